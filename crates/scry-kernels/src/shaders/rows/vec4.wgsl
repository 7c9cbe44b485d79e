// Rows are read four elements at a time: their lengths are multiples of four. Preceded by the
// definitions of `Quad`.

alias Chunk = vec4<f32>;
alias StoredChunk = Quad;

const WIDTH: u32 = 4u;

fn widen_chunk(chunk: StoredChunk) -> Chunk {
    return widen_quad(chunk);
}

fn narrow_chunk(chunk: Chunk) -> StoredChunk {
    return narrow_quad(chunk);
}

fn largest_of(chunk: Chunk) -> f32 {
    return max(max(chunk.x, chunk.y), max(chunk.z, chunk.w));
}

fn sum_of(chunk: Chunk) -> f32 {
    return (chunk.x + chunk.y) + (chunk.z + chunk.w);
}

