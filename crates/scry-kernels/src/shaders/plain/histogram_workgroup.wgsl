// Counts elements by one workgroup. Preceded by
//
//     const COUNTERS: u32, at least the number of bins.

struct Parameters {
    count: u32,
    bins: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

var<workgroup> counters: array<atomic<u32>, COUNTERS>;

@compute @workgroup_size(256)
fn histogram_workgroup(@builtin(local_invocation_index) local_index: u32) {
    // Workgroup memory is zero at first.
    for (var at = local_index; at < parameters.count; at += 256u) {
        let bin = x[at];
        if bin < parameters.bins {
            atomicAdd(&counters[bin], 1u);
        }
    }
    workgroupBarrier();
    for (var bin = local_index; bin < parameters.bins; bin += 256u) {
        counts[bin] = atomicLoad(&counters[bin]);
    }
}
