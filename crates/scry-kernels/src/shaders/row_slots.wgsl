// Which granules of rows an invocation moves: up to four, its slots. Preceded by
//
//     alias Granule: some elements of a row, as many as its size allows, at most 16 bytes;
//     const THREADS: u32, the invocations of a row, a power of two up to 256;
//     const ITEMS: u32, the granules of a row that an invocation moves;
//     const ROWS: u32, the rows of which it does so: ITEMS * ROWS is at most 4.

struct Shape {
    // Rows that indices select: those of the table.
    rows: u32,
    // Granules of a row.
    granules: u32,
    // Indices.
    count: u32,
}

var<immediate> shape: Shape;

// The number of an index, and a granule of the row that it selects.
struct Slot {
    nth: u32,
    granule: u32,
    is_used: bool,
}

fn slot(group: vec3<u32>, local_index: u32, number: u32) -> Slot {
    let row = number / ITEMS * (256u / THREADS) + local_index / THREADS;
    let nth = group.x * (256u / THREADS * ROWS) + row;
    let granule =
        group.y * (THREADS * ITEMS) + number % ITEMS * THREADS + local_index % THREADS;
    let is_used = number < ITEMS * ROWS && nth < shape.count && granule < shape.granules;
    // Beyond the end of a row it is the last granule, so that unconditional loads read nothing else.
    return Slot(nth, min(granule, shape.granules - 1u), is_used);
}

