@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> words: array<u32, 64>;

fn exchange(i: u32) -> u32 {
    words[i] = i;
    storageBarrier();
    workgroupBarrier();
    return words[63u - i];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    if id.x >= arrayLength(&data) {
        return;
    }
    data[id.x] = exchange(i);
}
