// Clears the counts of a histogram.

struct Parameters {
    count: u32,
    bins: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(256)
fn clear_counts(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 4u; nth++) {
        let at = (group.x * 4u + nth) * 256u + local_index;
        if at < parameters.bins {
            counts[at] = 0u;
        }
    }
}
