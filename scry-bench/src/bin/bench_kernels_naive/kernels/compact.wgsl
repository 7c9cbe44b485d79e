// Copies of selected elements, by one workgroup: one chunk for each invocation.

struct Sizes { count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> flags: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(3) var<storage, read_write> selected: array<u32>;

var<workgroup> counts: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local_index: u32) {
    let chunk = (sizes.count + 255u) / 256u;
    let start = min(local_index * chunk, sizes.count);
    let end = min(start + chunk, sizes.count);
    var count = 0u;
    for (var i = start; i < end; i++) {
        count += u32(flags[i] != 0u);
    }
    counts[local_index] = count;
    workgroupBarrier();
    var at = 0u;
    for (var i = 0u; i < local_index; i++) {
        at += counts[i];
    }
    for (var i = start; i < end; i++) {
        if flags[i] != 0u {
            y[at] = x[i];
            at++;
        }
    }
    if local_index == 255u {
        selected[0] = at;
    }
}
