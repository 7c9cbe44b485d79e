// Counts the flags of chunks that are set, each by one invocation. Preceded by chunks.wgsl.

@group(0) @binding(1) var<storage, read> flags: array<u32>;
@group(0) @binding(2) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(64)
fn count_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.chunks {
        return;
    }
    var count = 0u;
    let end = chunk_end(id.x);
    for (var at = chunk_start(id.x); at < end; at++) {
        count += u32(flags[at] != 0u);
    }
    sums[id.x] = count;
}
