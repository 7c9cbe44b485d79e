// Rows of a matrix, each computed by THREADS invocations of a workgroup, which hold VALUES values of
// it each. Longer rows are read again from memory. Preceded by the elements' definitions, and by
//
//     const THREADS: u32, a power of two; const VALUES: u32; const CACHED: bool.
//
// CACHED is whether THREADS * VALUES covers a row.

struct Matrix {
    rows: u32,
    columns: u32,
    epsilon: f32,
}

var<immediate> matrix: Matrix;

const WORKGROUP: u32 = 256u;
const ROWS_PER_WORKGROUP: u32 = WORKGROUP / THREADS;

var<workgroup> exchange: array<vec2<f32>, 256>;

// Combines the values of the invocations of a row, whose position in the row is `thread`.
fn reduce_row(local_index: u32, thread: u32, value: vec2<f32>) -> vec2<f32> {
    exchange[local_index] = value;
    workgroupBarrier();
    for (var distance = THREADS / 2u; distance > 0u; distance >>= 1u) {
        if thread < distance {
            exchange[local_index] = merge(exchange[local_index], exchange[local_index + distance]);
        }
        workgroupBarrier();
    }
    let result = exchange[local_index - thread];
    workgroupBarrier();
    return result;
}

