// Counts elements, one by each invocation.

struct Parameters {
    count: u32,
    bins: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(64)
fn histogram_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= parameters.count {
        return;
    }
    let bin = x[id.x];
    if bin < parameters.bins {
        atomicAdd(&counts[bin], 1u);
    }
}
