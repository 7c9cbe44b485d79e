// Transposes a row-major matrix in tiles of 32×32, so that both loads and stores are
// coalesced. The tile's row stride of 33 avoids bank conflicts.

const TILE: u32 = 32u;
const PITCH: u32 = 33u;

struct Shape {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<immediate> shape: Shape;

var<workgroup> tile: array<f32, 1056>;

@compute @workgroup_size(32, 8)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x_column = group.x * TILE + local.x;
    for (var i = 0u; i < 4u; i++) {
        let row_in_tile = local.y + 8u * i;
        let x_row = group.y * TILE + row_in_tile;
        if x_row < shape.rows && x_column < shape.columns {
            tile[row_in_tile * PITCH + local.x] = x[x_row * shape.columns + x_column];
        }
    }
    workgroupBarrier();
    let y_column = group.y * TILE + local.x;
    for (var i = 0u; i < 4u; i++) {
        let row_in_tile = local.y + 8u * i;
        let y_row = group.x * TILE + row_in_tile;
        if y_row < shape.columns && y_column < shape.rows {
            y[y_row * shape.rows + y_column] = tile[local.x * PITCH + row_in_tile];
        }
    }
}
