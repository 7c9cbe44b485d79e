// Chunks of rows, each of one invocation.

struct Shape {
    rows: u32,
    columns: u32,
    // Chunks of a row, and the elements of a chunk.
    chunks: u32,
    chunk_len: u32,
}

var<immediate> shape: Shape;

fn chunk_start(chunk: u32) -> u32 {
    let row = chunk / shape.chunks;
    return row * shape.columns + min(chunk % shape.chunks * shape.chunk_len, shape.columns);
}

fn chunk_end(chunk: u32) -> u32 {
    let row = chunk / shape.chunks;
    return row * shape.columns + min((chunk % shape.chunks + 1u) * shape.chunk_len, shape.columns);
}

