// Sums of rows that are added to the same row of `y`. Pairs are sorted by target, and
// divided into chunks; THREADS invocations add the rows of a chunk, one column each, in the order of
// the pairs. The rows that continue the last row of the chunk before become a sum of their own, which
// scatter_add_heads.wgsl adds. Preceded by scatter_add_chunks.wgsl.

@group(0) @binding(0) var<storage, read> targets: array<u32>;
@group(0) @binding(1) var<storage, read> sources: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> heads: array<f32>;

// Adds a sum to a row of `y`, or makes it the head of the chunk.
fn finish(chunk: u32, column: u32, row: u32, sum: f32, is_head: bool) {
    if row >= shape.rows {
        return;
    }
    if is_head {
        heads[chunk * shape.columns + column] = sum;
    } else {
        y[row * shape.columns + column] += sum;
    }
}

@compute @workgroup_size(256)
fn add_runs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let chunk = group.x * (256u / THREADS) + local_index / THREADS;
    let column = group.y * THREADS + local_index % THREADS;
    let first = chunk * CHUNK;
    if first >= shape.count || column >= shape.columns {
        return;
    }
    var row = targets[first];
    var is_head = continues(chunk, row);
    var sum = 0.0;
    for (var nth = first; nth < min(first + CHUNK, shape.count); nth += 4u) {
        // Loads are unconditional, so that they are in flight together.
        let rows = vec4<u32>(
            targets[nth],
            targets[nth + 1u],
            targets[nth + 2u],
            targets[nth + 3u],
        );
        let value = vec4<f32>(
            x[sources[nth] * shape.columns + column],
            x[sources[nth + 1u] * shape.columns + column],
            x[sources[nth + 2u] * shape.columns + column],
            x[sources[nth + 3u] * shape.columns + column],
        );
        for (var item = 0u; item < 4u; item++) {
            if nth + item < shape.count {
                if rows[item] != row {
                    finish(chunk, column, row, sum, is_head);
                    row = rows[item];
                    is_head = false;
                    sum = 0.0;
                }
                sum += value[item];
            }
        }
    }
    finish(chunk, column, row, sum, is_head);
}
