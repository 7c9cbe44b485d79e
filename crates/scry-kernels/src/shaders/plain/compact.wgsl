// Copies the elements of chunks whose flags are set, a chunk by each invocation. Preceded by the
// elements' definitions, by chunks.wgsl, and by `sum_before` of chunks.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read> flags: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;
@group(0) @binding(4) var<storage, read_write> count: array<u32>;

@compute @workgroup_size(64)
fn compact_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.chunks {
        return;
    }
    var to = sum_before(id.x);
    let end = chunk_end(id.x);
    for (var at = chunk_start(id.x); at < end; at++) {
        if flags[at] != 0u {
            y[to] = x[at];
            to++;
        }
    }
    if id.x == shape.chunks - 1u {
        count[0] = to;
    }
}
