// The prefix sums of a workgroup of 256 invocations.

// Two halves, which are written alternately.
var<workgroup> sums: array<u32, 512>;

// Returns the sum of the values of the invocations before this one, and of all.
fn sums_before(local_index: u32, value: u32) -> vec2<u32> {
    var sum = value;
    var half = 0u;
    sums[local_index] = sum;
    workgroupBarrier();
    for (var distance = 1u; distance < 256u; distance <<= 1u) {
        if local_index >= distance {
            sum += sums[half + local_index - distance];
        }
        half = 256u - half;
        sums[half + local_index] = sum;
        workgroupBarrier();
    }
    return vec2<u32>(sum - value, sums[half + 255u]);
}
