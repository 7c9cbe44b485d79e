// Atomics in workgroup and storage memory: a histogram, its fullest bin, and a lock-free maximum.

struct Result {
    bins: array<atomic<u32>, 256>,
    fullest: atomic<u32>,
    lowest: atomic<i32>,
}

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: Result;

var<workgroup> local_bins: array<atomic<u32>, 256>;

fn raise(bin: u32) {
    var seen = atomicLoad(&result.fullest);
    loop {
        let count = atomicLoad(&result.bins[bin]);
        if count <= seen {
            break;
        }
        let attempt = atomicCompareExchangeWeak(&result.fullest, seen, count);
        if attempt.exchanged {
            break;
        }
        seen = attempt.old_value;
    }
}

@compute @workgroup_size(256)
fn histogram(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) bin: u32,
) {
    if id.x < arrayLength(&input) {
        let value = input[id.x];
        atomicAdd(&local_bins[value & 0xffu], 1u);
        atomicMin(&result.lowest, i32(value));
    }
    workgroupBarrier();
    let count = atomicExchange(&local_bins[bin], 0u);
    if count > 0u {
        atomicAdd(&result.bins[bin], count);
        raise(bin);
    }
}
