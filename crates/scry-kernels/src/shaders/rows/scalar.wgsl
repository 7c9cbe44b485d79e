// Rows are read one element at a time.

alias Chunk = f32;
alias StoredChunk = Stored;

const WIDTH: u32 = 1u;

fn widen_chunk(chunk: StoredChunk) -> Chunk {
    return widen(chunk);
}

fn narrow_chunk(chunk: Chunk) -> StoredChunk {
    return narrow(chunk);
}

fn largest_of(chunk: Chunk) -> f32 {
    return chunk;
}

fn sum_of(chunk: Chunk) -> f32 {
    return chunk;
}

