// Sums the chunks of rows, each by one invocation. Preceded by the elements' definitions, and by chunks.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(2) var<storage, read_write> sums: array<Computed>;

@compute @workgroup_size(64)
fn sum_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.rows * shape.chunks {
        return;
    }
    var sum = Computed(0);
    let end = chunk_end(id.x);
    for (var at = chunk_start(id.x); at < end; at++) {
        sum += widen(x[at]);
    }
    sums[id.x] = sum;
}
