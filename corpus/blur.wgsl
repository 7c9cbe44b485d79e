// A 3x3 box blur of packed RGBA pixels, clamped at the edges.

struct Size {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<uniform> size: Size;
@group(0) @binding(1) var<storage, read> src: array<u32>;
@group(0) @binding(2) var<storage, read_write> dst: array<u32>;

fn pixel(x: i32, y: i32) -> vec4f {
    let last = vec2i(i32(size.width), i32(size.height)) - 1;
    let at = clamp(vec2i(x, y), vec2i(0), last);
    return unpack4x8unorm(src[u32(at.y) * size.width + u32(at.x)]);
}

@compute @workgroup_size(8, 8)
fn blur(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= size.width || id.y >= size.height {
        return;
    }
    var sum = vec4f();
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            sum += pixel(i32(id.x) + dx, i32(id.y) + dy);
        }
    }
    dst[id.y * size.width + id.x] = pack4x8unorm(sum / 9.0);
}
