// The sum of all elements, by one invocation.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var sum = 0.0;
    for (var i = 0u; i < sizes.count; i++) {
        sum += x[i];
    }
    out[0] = sum;
}
