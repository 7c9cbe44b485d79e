// Transposes matrices whose rows and columns are multiples of 4, in tiles of 64 × 64 elements per
// workgroup. Each invocation loads a block of 4 × 4 elements, transposes it in registers, and
// exchanges quads through workgroup memory: loads and stores are of 4 elements, and coalesced.
// Preceded by transpose_outer.wgsl, and by
//
//     alias Quad: 4 elements, as words; fn transposed(block: Block) -> Block.

// Four quads: rows or columns of a block of 4 × 4 elements.
struct Block {
    a: Quad,
    b: Quad,
    c: Quad,
    d: Quad,
}

@group(0) @binding(0) var<storage, read> x: array<Quad>;
@group(0) @binding(1) var<storage, read_write> y: array<Quad>;

// Quads of a tile, transposed: 64 rows of 16 quads. The position of a quad in its row is XORed with
// the number of its block of columns, so that neither accesses along rows nor along columns have
// bank conflicts.
var<workgroup> tile: array<Quad, 1024>;

@compute @workgroup_size(256)
fn transpose_blocks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let start = outer_positions(group.z);
    let across = local_index % 16u;
    let down = local_index / 16u;

    // The block of rows and of columns of `x`.
    let row = group.y * 64u + down * 4u;
    let column = group.x * 64u + across * 4u;
    if row < shape.rows && column < shape.columns {
        let at = (start.x + row * shape.x_row + column) / 4u;
        let step = shape.x_row / 4u;
        let block = transposed(Block(x[at], x[at + step], x[at + 2u * step], x[at + 3u * step]));
        let first = across * 64u + (down ^ across);
        tile[first] = block.a;
        tile[first + 16u] = block.b;
        tile[first + 32u] = block.c;
        tile[first + 48u] = block.d;
    }
    workgroupBarrier();

    // Rows of `y`, of which each has 16 invocations.
    let y_column = group.y * 64u + across * 4u;
    let y_row = group.x * 64u + down;
    let at = (start.y + y_row * shape.y_row + y_column) / 4u;
    let step = 4u * shape.y_row;
    if y_column < shape.rows {
        for (var nth = 0u; nth < 4u; nth++) {
            let row_in_tile = nth * 16u + down;
            if y_row + nth * 16u < shape.columns {
                y[at + nth * step] = tile[row_in_tile * 16u + (across ^ (row_in_tile / 4u))];
            }
        }
    }
}
