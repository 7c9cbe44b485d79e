// Inclusive prefix sums, by one invocation.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(1)
fn main() {
    var sum = 0u;
    for (var i = 0u; i < sizes.count; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
