// The sum of all elements, by one workgroup.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local_index: u32) {
    var sum = 0.0;
    for (var i = local_index; i < sizes.count; i += 256u) {
        sum += x[i];
    }
    sums[local_index] = sum;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if local_index < half {
            sums[local_index] += sums[local_index + half];
        }
    }
    if local_index == 0u {
        out[0] = sums[0];
    }
}
