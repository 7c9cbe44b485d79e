// Products of column-major matrices with vectors, here the columns of their transposes, which are
// stored by rows: a workgroup has LANES parts of rows, one or four columns each, and 256 / LANES rows
// at a time. The workgroups along z are the products of a batch. Preceded by the elements' definitions, and by
//
//     alias Part: one element or a quad; alias Sum: as many f32; fn widen_part(part: Part) -> Sum;
//     const LANES: u32, a power of two up to 256;
//     fn store(nth: u32, split: u32, product: u32, sum: Sum), which stores the sums of a part.

struct Shape {
    rows: u32,
    // Parts of a row.
    parts: u32,
    // Rows that a workgroup adds.
    height: u32,
    // The strides of lines, and of the products of a batch: of matrices, vectors and results.
    ld: u32,
    a_stride: u32,
    x_stride: u32,
    // The stride of the results of a split; 0 if there is one.
    stride: u32,
    y_stride: u32,
}

@group(0) @binding(0) var<storage, read> a: array<Part>;
@group(0) @binding(1) var<storage, read> x: array<Stored>;

var<immediate> shape: Shape;

const ROWS: u32 = 256u / LANES;

var<workgroup> sums: array<Sum, 256>;

@compute @workgroup_size(256)
fn gemv_columns(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let nth = group.x * LANES + local_index % LANES;
    let end = select(0u, min((group.y + 1u) * shape.height, shape.rows), nth < shape.parts);
    var row = group.y * shape.height + local_index / LANES;
    let start = group.z * shape.a_stride + nth;
    let x_start = group.z * shape.x_stride;
    // Four loads are in flight together.
    var sum_a = Sum();
    var sum_b = Sum();
    var sum_c = Sum();
    var sum_d = Sum();
    while row + 3u * ROWS < end {
        let at = start + row * shape.ld;
        let step = ROWS * shape.ld;
        let a0 = widen_part(a[at]);
        let a1 = widen_part(a[at + step]);
        let a2 = widen_part(a[at + 2u * step]);
        let a3 = widen_part(a[at + 3u * step]);
        sum_a = fma(Sum(widen(x[x_start + row])), a0, sum_a);
        sum_b = fma(Sum(widen(x[x_start + row + ROWS])), a1, sum_b);
        sum_c = fma(Sum(widen(x[x_start + row + 2u * ROWS])), a2, sum_c);
        sum_d = fma(Sum(widen(x[x_start + row + 3u * ROWS])), a3, sum_d);
        row += 4u * ROWS;
    }
    while row < end {
        sum_a = fma(Sum(widen(x[x_start + row])), widen_part(a[start + row * shape.ld]), sum_a);
        row += ROWS;
    }
    var sum = (sum_a + sum_b) + (sum_c + sum_d);
    sums[local_index] = sum;
    workgroupBarrier();
    if local_index < LANES && nth < shape.parts {
        for (var other = 1u; other < ROWS; other++) {
            sum += sums[other * LANES + local_index];
        }
        store(nth, group.y, group.z, sum);
    }
}
