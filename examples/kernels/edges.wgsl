// Edges of a grey image: the length of its gradient, from 0 (flat) to 1.
//
//   scry run edges.wgsl --in src=photo.png --out dst=edges.png --set RADIUS=1
//
// A pixel at (dx, dy) from the centre counts with the weight dx / (dx² + dy²) in the horizontal
// gradient and dy / (dx² + dy²) in the vertical one. Radius 1 is the Sobel operator; larger radii
// see through noise. Beyond its border the image continues with the border's pixels.
//
//   scry verify edges.wgsl --in src=photo.png --atol 1e-6
//
// compares devices. It needs an absolute tolerance: where the image is flat, the terms cancel, and only
// their rounding errors are left, which are small but may be any number of units in the last place.

override src_width: u32;
override src_height: u32;
override RADIUS: u32 = 1u;

@group(0) @binding(0) var<storage, read> src: array<f32>;
@group(0) @binding(1) var<storage, read_write> dst: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= src_width || id.y >= src_height {
        return;
    }
    let last = vec2(i32(src_width) - 1, i32(src_height) - 1);
    let radius = i32(RADIUS);
    let taps = 2u * RADIUS + 1u;
    var gradient = vec2(0.0, 0.0);
    var weight_sum = 0.0;
    for (var row = 0u; row < taps; row++) {
        for (var column = 0u; column < taps; column++) {
            let step = vec2(i32(column) - radius, i32(row) - radius);
            let offset = vec2<f32>(step);
            let weight = offset / max(dot(offset, offset), 1.0);
            let at = clamp(vec2<i32>(id.xy) + step, vec2(0, 0), last);
            gradient += weight * src[u32(at.y) * src_width + u32(at.x)];
            weight_sum += max(weight.x, 0.0);
        }
    }
    dst[id.y * src_width + id.x] = min(length(gradient) / max(weight_sum, 1.0), 1.0);
}
