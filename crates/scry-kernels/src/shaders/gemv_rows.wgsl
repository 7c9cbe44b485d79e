// Products of rows of a matrix with a vector, each by THREADS invocations. Preceded by the elements'
// definitions, and by
//
//     alias Chunk: one or several elements; fn add_products(sum: f32, a: Chunk, x: Chunk) -> f32;
//     const THREADS: u32, a power of two up to 256;
//     fn store(row: u32, split: u32, product: u32, sum: f32), which stores a sum.
//
// The workgroups along z are the products of a batch.

struct Shape {
    rows: u32,
    // Chunks of a row.
    chunks: u32,
    // Chunks of a part of a row, which a workgroup multiplies.
    part: u32,
    // The strides of lines, and of the products of a batch: of matrices, vectors and results.
    ld: u32,
    a_stride: u32,
    x_stride: u32,
    // The stride of the results of a split; 0 if there is one.
    stride: u32,
    y_stride: u32,
}

@group(0) @binding(0) var<storage, read> a: array<Chunk>;
@group(0) @binding(1) var<storage, read> x: array<Chunk>;

var<immediate> shape: Shape;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn gemv_rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let row = group.x * (256u / THREADS) + local_index / THREADS;
    let thread = local_index % THREADS;
    let end = select(0u, min((group.y + 1u) * shape.part, shape.chunks), row < shape.rows);
    let start = group.z * shape.a_stride + row * shape.ld;
    let x_start = group.z * shape.x_stride;
    // Four loads are in flight together.
    var parts = vec4<f32>();
    var at = group.y * shape.part + thread;
    while at + 3u * THREADS < end {
        let a0 = a[start + at];
        let a1 = a[start + at + THREADS];
        let a2 = a[start + at + 2u * THREADS];
        let a3 = a[start + at + 3u * THREADS];
        parts = vec4<f32>(
            add_products(parts.x, a0, x[x_start + at]),
            add_products(parts.y, a1, x[x_start + at + THREADS]),
            add_products(parts.z, a2, x[x_start + at + 2u * THREADS]),
            add_products(parts.w, a3, x[x_start + at + 3u * THREADS]),
        );
        at += 4u * THREADS;
    }
    while at < end {
        parts.x = add_products(parts.x, a[start + at], x[x_start + at]);
        at += THREADS;
    }
    var sum = (parts.x + parts.y) + (parts.z + parts.w);
    if THREADS > 1u {
        sums[local_index] = sum;
        workgroupBarrier();
        for (var distance = THREADS / 2u; distance > 0u; distance /= 2u) {
            if thread < distance {
                sum += sums[local_index + distance];
                sums[local_index] = sum;
            }
            workgroupBarrier();
        }
    }
    if thread == 0u && row < shape.rows {
        store(row, group.y, group.z, sum);
    }
}
