// Replaces the counts of the 256 values of each of four digits by their exclusive prefix sums.

// Tickets of passes, then the counts.
@group(0) @binding(0) var<storage, read_write> states: array<u32>;

var<workgroup> sums: array<u32, 8>;

@compute @workgroup_size(256)
fn scan_digits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    let at = 4u + group.x * 256u + local_index;
    let count = states[at];
    let sum = subgroupInclusiveAdd(count);
    if lane == 31u {
        sums[subgroup] = sum;
    }
    workgroupBarrier();
    var start = sum - count;
    for (var other = 0u; other < 8u; other++) {
        start += select(0u, sums[other], other < subgroup);
    }
    states[at] = start;
}
