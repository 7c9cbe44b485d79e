// Products of the columns of a matrix with a vector: a workgroup has LANES parts of rows, one or four
// columns each, and 256 / LANES rows at a time. Preceded by the elements' definitions, and by
//
//     alias Part: one element or a quad; alias Sum: as many f32; fn widen_part(part: Part) -> Sum;
//     const LANES: u32, a power of two up to 256;
//     fn store(nth: u32, split: u32, sum: Sum), which stores the sums of a part.

struct Shape {
    rows: u32,
    // Parts of a row.
    parts: u32,
    // Rows that a workgroup adds.
    height: u32,
    // Results of a split in the order of storage; 0 if there is one.
    stride: u32,
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
    // Four loads are in flight together.
    var sum_a = Sum();
    var sum_b = Sum();
    var sum_c = Sum();
    var sum_d = Sum();
    while row + 3u * ROWS < end {
        let at = row * shape.parts + nth;
        let step = ROWS * shape.parts;
        let a0 = widen_part(a[at]);
        let a1 = widen_part(a[at + step]);
        let a2 = widen_part(a[at + 2u * step]);
        let a3 = widen_part(a[at + 3u * step]);
        sum_a = fma(Sum(widen(x[row])), a0, sum_a);
        sum_b = fma(Sum(widen(x[row + ROWS])), a1, sum_b);
        sum_c = fma(Sum(widen(x[row + 2u * ROWS])), a2, sum_c);
        sum_d = fma(Sum(widen(x[row + 3u * ROWS])), a3, sum_d);
        row += 4u * ROWS;
    }
    while row < end {
        sum_a = fma(Sum(widen(x[row])), widen_part(a[row * shape.parts + nth]), sum_a);
        row += ROWS;
    }
    var sum = (sum_a + sum_b) + (sum_c + sum_d);
    sums[local_index] = sum;
    workgroupBarrier();
    if local_index < LANES && nth < shape.parts {
        for (var other = 1u; other < ROWS; other++) {
            sum += sums[other * LANES + local_index];
        }
        store(nth, group.y, sum);
    }
}
