@group(0) @binding(0) var<storage, read_write> flags: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>) {
    while flags[group.x] == 0u {
        flags[group.x + 1u] += 1u;
        storageBarrier();
    }
}
