// Transposes matrices of any size in tiles of ROWS × COLUMNS elements per workgroup, which are loaded
// along the rows of `x` and stored along the rows of `y`. Preceded by the elements' definitions, by
// transpose_outer.wgsl, and by
//
//     const ROWS: u32; const COLUMNS: u32, powers of two whose product is a multiple of 256;
//     const BATCH: u32, loads in flight, of which 256 * BATCH divides the product;
//     const SHIFT: u32; const MASK: u32; const UNIT: u32.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

const TILE: u32 = ROWS * COLUMNS;

var<workgroup> tile: array<Stored, TILE>;

// Returns the position of an element in the tile. The column is XORed with bits of the row, so that
// neither accesses along rows nor along columns have bank conflicts: MASK covers the columns, or the
// banks, and SHIFT the rows that have banks of their own. UNIT is 1 for 16-bit elements: two of them
// share a bank.
fn position(row: u32, column: u32) -> u32 {
    return row * COLUMNS + (column ^ (((row >> SHIFT) & MASK) << UNIT));
}

@compute @workgroup_size(256)
fn transpose_tiles(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let start = outer_positions(group.z);
    let first_row = group.y * ROWS;
    let first_column = group.x * COLUMNS;
    let x_start = start.x + first_row * shape.x_row + first_column;
    for (var first = local_index; first < TILE; first += 256u * BATCH) {
        // Loads are unconditional, so that they are in flight together: what is outside of the
        // matrix is not stored.
        var values: array<Stored, BATCH>;
        for (var nth = 0u; nth < BATCH; nth++) {
            let element = first + nth * 256u;
            values[nth] = x[x_start + element / COLUMNS * shape.x_row + element % COLUMNS];
        }
        for (var nth = 0u; nth < BATCH; nth++) {
            let element = first + nth * 256u;
            tile[position(element / COLUMNS, element % COLUMNS)] = values[nth];
        }
    }
    workgroupBarrier();
    let y_start = start.y + first_column * shape.y_row + first_row;
    for (var nth = local_index; nth < TILE; nth += 256u) {
        let row = nth % ROWS;
        let column = nth / ROWS;
        if first_row + row < shape.rows && first_column + column < shape.columns {
            y[y_start + column * shape.y_row + row] = tile[position(row, column)];
        }
    }
}
