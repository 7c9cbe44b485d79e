// The matrix whose rows are scanned.

struct Parameters {
    rows: u32,
    columns: u32,
    // Vectors of a row, the last of which may be incomplete.
    vectors: u32,
    // Vectors of a row that are accessed as such.
    body: u32,
    // Tiles of a row.
    tiles: u32,
    // Chunks of a row, and tiles of a chunk.
    chunks: u32,
    chunk_tiles: u32,
}

var<immediate> parameters: Parameters;

