// Counters of a histogram with few bins, in workgroup memory. Preceded by
//
//     const COPIES: u32, of each counter: neighbouring invocations have different ones, so that equal
//     elements do not all wait for the same; const COUNTERS: u32, at least COPIES for each bin.

@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

var<workgroup> counters: array<atomic<u32>, COUNTERS>;

fn begin(local_index: u32) {
    for (var at = local_index; at < COUNTERS; at += 256u) {
        atomicStore(&counters[at], 0u);
    }
    workgroupBarrier();
}

fn count_element(local_index: u32, bin: u32) {
    if bin < parameters.bins {
        atomicAdd(&counters[bin * COPIES + local_index % COPIES], 1u);
    }
}

fn end(local_index: u32) {
    workgroupBarrier();
    for (var bin = local_index; bin < parameters.bins; bin += 256u) {
        var count = 0u;
        for (var copy = 0u; copy < COPIES; copy++) {
            count += atomicLoad(&counters[bin * COPIES + copy]);
        }
        if count > 0u {
            atomicAdd(&counts[bin], count);
        }
    }
}

