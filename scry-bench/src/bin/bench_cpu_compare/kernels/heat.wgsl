// A step of the heat equation: five points, and pixels at the border stay as they are.

struct Size {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<storage, read> now: array<f32>;
@group(0) @binding(1) var<storage, read_write> next: array<f32>;
var<immediate> size: Size;

@compute @workgroup_size(SHAPE)
fn step(@builtin(global_invocation_id) id: vec3u) {
    let x = id.x;
    let y = id.y;
    if x >= size.width || y >= size.height {
        return;
    }
    let i = y * size.width + x;
    let old = now[i];
    if x == 0 || y == 0 || x == size.width - 1 || y == size.height - 1 {
        next[i] = old;
        return;
    }
    let around = now[i - 1] + now[i + 1] + now[i - size.width] + now[i + size.width];
    next[i] = old + 0.1 * (around - 4.0 * old);
}
