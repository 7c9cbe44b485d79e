@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> last: u32;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    if i < 10u {
        last = data[i];
        workgroupBarrier();
    }
    data[i] = last;
}
