// A 3×3 blur of one channel, weights 1 2 1 by 1 2 1, clamped at the edges.

struct Size {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> blurred: array<f32>;
var<immediate> size: Size;

fn pixel(x: i32, y: i32) -> f32 {
    let last = vec2i(i32(size.width), i32(size.height)) - 1;
    let at = clamp(vec2i(x, y), vec2i(0), last);
    return source[u32(at.y) * size.width + u32(at.x)];
}

@compute @workgroup_size(16, 16)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= size.width || id.y >= size.height {
        return;
    }
    let x = i32(id.x);
    let y = i32(id.y);
    var sum = 0.0;
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            let weight = f32((2 - abs(dx)) * (2 - abs(dy)));
            sum += weight * pixel(x + dx, y + dy);
        }
    }
    blurred[id.y * size.width + id.x] = sum / 16.0;
}
