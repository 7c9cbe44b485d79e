// Counts of bins, which are zero before: one element for each invocation.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.count {
        return;
    }
    let bin = x[id.x];
    if bin < arrayLength(&bins) {
        atomicAdd(&bins[bin], 1u);
    }
}
