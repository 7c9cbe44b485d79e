// Products of rows of quantised weights and columns of activations: a workgroup computes one row for
// up to COLUMNS columns, so that it decodes each weight once for them. Preceded by the elements'
// definitions, those of results, and the functions `weight` and `activation`.

struct Sizes {
    rows: u32,
    k: u32,
    columns: u32,
}

@group(0) @binding(1) var<storage, read> x: array<Stored>;
@group(0) @binding(2) var<storage, read_write> y: array<Output>;

var<immediate> sizes: Sizes;

const THREADS: u32 = 128u;
const COLUMNS: u32 = 8u;

var<workgroup> exchange: array<f32, 1024>;

@compute @workgroup_size(128)
fn quantized_matmul(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let row = group.x;
    let first_column = group.y * COLUMNS;
    let columns = min(sizes.columns - first_column, COLUMNS);
    var sums: array<f32, COLUMNS>;
    for (var at = local_index; at < sizes.k; at += THREADS) {
        let value = weight(row * sizes.k + at);
        for (var column = 0u; column < COLUMNS; column++) {
            if column < columns {
                sums[column] += value * activation(first_column + column, at);
            }
        }
    }
    for (var column = 0u; column < COLUMNS; column++) {
        exchange[column * THREADS + local_index] = sums[column];
    }
    workgroupBarrier();
    for (var distance = THREADS / 2u; distance > 0u; distance >>= 1u) {
        if local_index < distance {
            for (var column = 0u; column < COLUMNS; column++) {
                let at = column * THREADS + local_index;
                exchange[at] += exchange[at + distance];
            }
        }
        workgroupBarrier();
    }
    if local_index < columns {
        y[(first_column + local_index) * sizes.rows + row] =
            narrow_output(exchange[local_index * THREADS]);
    }
}
