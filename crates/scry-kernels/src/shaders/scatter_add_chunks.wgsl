// Chunks of sorted pairs: rows of `y`, the targets, and rows of `x`, the sources. Preceded by
//
//     const THREADS: u32, the invocations of a chunk, a power of two up to 256.

struct Shape {
    rows: u32,
    columns: u32,
    count: u32,
}

var<immediate> shape: Shape;

// Pairs of a chunk.
const CHUNK: u32 = 64u;

// Returns whether a row is also the last one of the chunk before.
fn continues(chunk: u32, row: u32) -> bool {
    return chunk > 0u && targets[chunk * CHUNK - 1u] == row;
}

