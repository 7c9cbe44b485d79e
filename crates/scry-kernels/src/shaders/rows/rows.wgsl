// Rows of a matrix, each computed by THREADS invocations of a workgroup, which hold VALUES chunks of
// it each. Longer rows are read again from memory. Preceded by the elements' definitions, by
// scalar.wgsl or vec4.wgsl, and by
//
//     const THREADS: u32, a power of two; const VALUES: u32; const CACHED: bool.
//
// CACHED is whether THREADS * VALUES covers a row. Followed by tree.wgsl or subgroups.wgsl.

struct Matrix {
    rows: u32,
    columns: u32,
    epsilon: f32,
}

var<immediate> matrix: Matrix;

const WORKGROUP: u32 = 256u;
const ROWS_PER_WORKGROUP: u32 = WORKGROUP / THREADS;

// The part of a matrix that an invocation computes.
struct Part {
    // The row's first chunk, and the number of its chunks: 0 beyond the last row.
    start: u32,
    chunks: u32,
    // The invocation's position in the row.
    thread: u32,
}

// Returns the part of the invocation at a position in its workgroup.
fn part_of(group: u32, position: u32) -> Part {
    let chunks = matrix.columns / WIDTH;
    let row = group * ROWS_PER_WORKGROUP + position / THREADS;
    return Part(row * chunks, select(0u, chunks, row < matrix.rows), position % THREADS);
}

// Combines two numbers of a reduction.
fn combine(a: f32, b: f32, is_sum: bool) -> f32 {
    if is_sum {
        return a + b;
    }
    return max(a, b);
}

// Returns the largest number of the invocations of a row.
fn row_largest(position: u32, value: f32) -> f32 {
    return reduce_row(position, value, false);
}

// Returns the sum of the numbers of the invocations of a row.
fn row_sum(position: u32, value: f32) -> f32 {
    return reduce_row(position, value, true);
}

