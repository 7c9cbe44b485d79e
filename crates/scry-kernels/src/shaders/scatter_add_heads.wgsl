// Adds the sums of chunks that continue a row of an earlier chunk, in order. Preceded by
// scatter_add_chunks.wgsl.

@group(0) @binding(0) var<storage, read> targets: array<u32>;
@group(0) @binding(1) var<storage, read> heads: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// Returns whether a chunk begins with the row of the chunk before, and returns false beyond the end.
fn is_part(chunk: u32, row: u32) -> bool {
    return chunk * CHUNK < shape.count && targets[chunk * CHUNK] == row;
}

@compute @workgroup_size(256)
fn add_heads(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first = group.x * (256u / THREADS) + local_index / THREADS;
    let column = group.y * THREADS + local_index % THREADS;
    if first * CHUNK >= shape.count || column >= shape.columns {
        return;
    }
    let row = targets[first * CHUNK];
    // The first chunk that continues a row adds all of them.
    if row >= shape.rows || !continues(first, row) || (first > 1u && continues(first - 1u, row)) {
        return;
    }
    var sum = 0.0;
    for (var chunk = first; is_part(chunk, row); chunk += 4u) {
        // Loads are unconditional, so that they are in flight together.
        let head = vec4<f32>(
            heads[chunk * shape.columns + column],
            heads[(chunk + 1u) * shape.columns + column],
            heads[(chunk + 2u) * shape.columns + column],
            heads[(chunk + 3u) * shape.columns + column],
        );
        sum += head.x;
        if is_part(chunk + 1u, row) {
            sum += head.y;
        }
        if is_part(chunk + 2u, row) {
            sum += head.z;
        }
        if is_part(chunk + 3u, row) {
            sum += head.w;
        }
    }
    y[row * shape.columns + column] += sum;
}
