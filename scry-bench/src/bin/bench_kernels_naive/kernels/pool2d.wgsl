// Maxima of windows of 2 × 2: one for each invocation.

struct Sizes { channels: u32, height: u32, width: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let out_height = sizes.height / 2u;
    let out_width = sizes.width / 2u;
    if id.x >= out_width || id.y >= out_height {
        return;
    }
    var largest = -3.0e38;
    for (var i = 0u; i < 2u; i++) {
        for (var j = 0u; j < 2u; j++) {
            let row = id.z * sizes.height + 2u * id.y + i;
            largest = max(largest, x[row * sizes.width + 2u * id.x + j]);
        }
    }
    y[(id.z * out_height + id.y) * out_width + id.x] = largest;
}
