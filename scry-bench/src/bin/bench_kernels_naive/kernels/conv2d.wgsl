// A convolution without padding: one result for each invocation.

struct Sizes {
    inputs: u32,
    outputs: u32,
    height: u32,
    width: u32,
    kernel_height: u32,
    kernel_width: u32,
}
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let out_height = sizes.height - sizes.kernel_height + 1u;
    let out_width = sizes.width - sizes.kernel_width + 1u;
    if id.x >= out_width || id.y >= out_height {
        return;
    }
    var sum = 0.0;
    for (var channel = 0u; channel < sizes.inputs; channel++) {
        for (var i = 0u; i < sizes.kernel_height; i++) {
            let row = (channel * sizes.height + id.y + i) * sizes.width + id.x;
            let weight_row = ((id.z * sizes.inputs + channel) * sizes.kernel_height + i)
                * sizes.kernel_width;
            for (var j = 0u; j < sizes.kernel_width; j++) {
                sum += x[row + j] * weights[weight_row + j];
            }
        }
    }
    y[(id.z * out_height + id.y) * out_width + id.x] = sum;
}
