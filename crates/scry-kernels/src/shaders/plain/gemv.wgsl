// Products of matrices with vectors, a result by each invocation. Preceded by the elements' definitions,
// and by
//
//     const OF_COLUMNS: bool, whether lines are columns, which neighbouring invocations share;
//     fn store(row: u32, split: u32, product: u32, sum: f32), which stores a sum.
//
// The workgroups along z are the products of a batch.

struct Shape {
    rows: u32,
    columns: u32,
    unused: u32,
    // The strides of lines, and of the products of a batch: of matrices, vectors and results.
    ld: u32,
    a_stride: u32,
    x_stride: u32,
    stride: u32,
    y_stride: u32,
}

@group(0) @binding(0) var<storage, read> a: array<Stored>;
@group(0) @binding(1) var<storage, read> x: array<Stored>;

var<immediate> shape: Shape;

// Products that are added before their sum is added to those before.
const BLOCK: u32 = select(256u, 64u, OF_COLUMNS);

@compute @workgroup_size(64)
fn gemv_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.rows {
        return;
    }
    let start = id.z * shape.a_stride + select(id.x * shape.ld, id.x, OF_COLUMNS);
    let step = select(1u, shape.ld, OF_COLUMNS);
    let x_start = id.z * shape.x_stride;
    var sum = 0.0;
    for (var block = 0u; block < shape.columns; block += BLOCK) {
        let end = min(block + BLOCK, shape.columns);
        // Loads of neighbouring invocations are contiguous if lines are columns: then more of them
        // in flight would only need more registers.
        let whole = select(block + (end - block) / 4u * 4u, block, OF_COLUMNS);
        var part_a = 0.0;
        var part_b = 0.0;
        var part_c = 0.0;
        var part_d = 0.0;
        for (var nth = block; nth < whole; nth += 4u) {
            let at = start + nth * step;
            part_a = fma(widen(a[at]), widen(x[x_start + nth]), part_a);
            part_b = fma(widen(a[at + step]), widen(x[x_start + nth + 1u]), part_b);
            part_c = fma(widen(a[at + 2u * step]), widen(x[x_start + nth + 2u]), part_c);
            part_d = fma(widen(a[at + 3u * step]), widen(x[x_start + nth + 3u]), part_d);
        }
        for (var nth = whole; nth < end; nth++) {
            part_a = fma(widen(a[start + nth * step]), widen(x[x_start + nth]), part_a);
        }
        sum += (part_a + part_b) + (part_c + part_d);
    }
    store(id.x, 0u, id.z, sum);
}
