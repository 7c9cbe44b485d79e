// Counters of a histogram with many bins.

@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;

fn begin(local_index: u32) {}

fn count_element(local_index: u32, bin: u32) {
    if bin < parameters.bins {
        atomicAdd(&counts[bin], 1u);
    }
}

fn end(local_index: u32) {}

