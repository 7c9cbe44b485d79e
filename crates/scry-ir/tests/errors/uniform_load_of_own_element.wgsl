@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> words: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    words[i] = data[i];
    data[i] = workgroupUniformLoad(&words[63u - i]);
}
