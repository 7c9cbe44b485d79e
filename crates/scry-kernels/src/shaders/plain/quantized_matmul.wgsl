// Products of rows of quantised weights and columns of activations, one by each invocation. Preceded by the
// elements' definitions, those of results, and the functions `weight` and `activation`.

struct Sizes {
    rows: u32,
    k: u32,
    columns: u32,
}

@group(0) @binding(1) var<storage, read> x: array<Stored>;
@group(0) @binding(2) var<storage, read_write> y: array<Output>;

var<immediate> sizes: Sizes;

@compute @workgroup_size(64)
fn quantized_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    let start = id.x * sizes.k;
    var sum = 0.0;
    for (var block = 0u; block < sizes.k; block += 16u) {
        var part = 0.0;
        for (var at = block; at < block + 16u; at++) {
            part += weight(start + at) * activation(id.y, at);
        }
        sum += part;
    }
    y[id.y * sizes.rows + id.x] = narrow_output(sum);
}
