// Inclusive prefix sums, by one workgroup: one chunk for each invocation.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local_index: u32) {
    let chunk = (sizes.count + 255u) / 256u;
    let start = min(local_index * chunk, sizes.count);
    let end = min(start + chunk, sizes.count);
    var sum = 0u;
    for (var i = start; i < end; i++) {
        sum += x[i];
    }
    sums[local_index] = sum;
    workgroupBarrier();
    sum = 0u;
    for (var i = 0u; i < local_index; i++) {
        sum += sums[i];
    }
    for (var i = start; i < end; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
