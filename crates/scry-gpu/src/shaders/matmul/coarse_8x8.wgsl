// C = A × B in tiles of 128×128: 256 invocations, each with 8×8 elements of C in registers.
// Both operands are staged in workgroup memory, 8 of K at a time, double-buffered: the next stage
// is loaded while one is multiplied, so one barrier per step is enough. A is stored column by
// column: the eight rows of an invocation are adjacent. In columns 4 to 7 of a stage, blocks of 16
// rows are swapped pairwise (an XOR swizzle), which avoids bank conflicts of the stores. The eight
// columns of an invocation are two quads 64 apart: adjacent invocations read adjacent words.
//
// Appended to io_scalar.wgsl or io_vec4.wgsl, which define `shape` and the loads and stores.

const TILE_K: u32 = 8u;
// Elements of a column of A's stage.
const COLUMN: u32 = 128u;
// Elements of A per stage, and quads (vec4s) of B.
const STAGE_A: u32 = TILE_K * COLUMN;
const STAGE_B: u32 = TILE_K * 32u;

var<workgroup> tile_a: array<f32, 2u * STAGE_A>;
var<workgroup> tile_b: array<vec4<f32>, 2u * STAGE_B>;

// Returns the swizzled index of the first row of a block of eight in a column of A's stage.
fn swizzled_row(block: u32, column: u32) -> u32 {
    return (block ^ ((column & 4u) / 2u)) * 8u;
}

// Stores four elements of a row of A, one per column.
fn store_tile_a(at: u32, value: vec4<f32>) {
    tile_a[at] = value.x;
    tile_a[at + COLUMN] = value.y;
    tile_a[at + 2u * COLUMN] = value.z;
    tile_a[at + 3u * COLUMN] = value.w;
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    // A stage is 128 rows of 2 quads of A and 8 rows of 32 quads of B; each invocation loads one
    // quad of each.
    let a_row = group.y * 128u + local_index / 2u;
    let a_column = (local_index % 2u) * 4u;
    let a_first = a_column * COLUMN + swizzled_row(local_index / 16u, a_column);
    let a_at = a_first + (local_index / 2u) % 8u;
    let b_row = local_index / 32u;
    let b_column = group.x * 128u + (local_index % 32u) * 4u;
    let steps = (shape.k + TILE_K - 1u) / TILE_K;

    // The left and the right quad of each of the eight rows of C.
    var left0 = vec4<f32>();
    var left1 = vec4<f32>();
    var left2 = vec4<f32>();
    var left3 = vec4<f32>();
    var left4 = vec4<f32>();
    var left5 = vec4<f32>();
    var left6 = vec4<f32>();
    var left7 = vec4<f32>();
    var right0 = vec4<f32>();
    var right1 = vec4<f32>();
    var right2 = vec4<f32>();
    var right3 = vec4<f32>();
    var right4 = vec4<f32>();
    var right5 = vec4<f32>();
    var right6 = vec4<f32>();
    var right7 = vec4<f32>();

    store_tile_a(a_at, load_a(a_row, a_column));
    tile_b[local_index] = load_b(b_row, b_column);
    for (var step = 0u; step < steps; step++) {
        workgroupBarrier();
        let current = step & 1u;
        let next = (step + 1u) * TILE_K;
        let next_a = load_a(a_row, next + a_column);
        let next_b = load_b(next + b_row, b_column);

        for (var k = 0u; k < TILE_K; k++) {
            let rows = current * STAGE_A + k * COLUMN + swizzled_row(local.y, k);
            let columns = current * STAGE_B + k * 32u + local.x;
            let b0 = tile_b[columns];
            let b1 = tile_b[columns + 16u];
            let a0 = vec4(tile_a[rows + 0u]);
            let a1 = vec4(tile_a[rows + 1u]);
            let a2 = vec4(tile_a[rows + 2u]);
            let a3 = vec4(tile_a[rows + 3u]);
            let a4 = vec4(tile_a[rows + 4u]);
            let a5 = vec4(tile_a[rows + 5u]);
            let a6 = vec4(tile_a[rows + 6u]);
            let a7 = vec4(tile_a[rows + 7u]);
            left0 = fma(a0, b0, left0);
            right0 = fma(a0, b1, right0);
            left1 = fma(a1, b0, left1);
            right1 = fma(a1, b1, right1);
            left2 = fma(a2, b0, left2);
            right2 = fma(a2, b1, right2);
            left3 = fma(a3, b0, left3);
            right3 = fma(a3, b1, right3);
            left4 = fma(a4, b0, left4);
            right4 = fma(a4, b1, right4);
            left5 = fma(a5, b0, left5);
            right5 = fma(a5, b1, right5);
            left6 = fma(a6, b0, left6);
            right6 = fma(a6, b1, right6);
            left7 = fma(a7, b0, left7);
            right7 = fma(a7, b1, right7);
        }
        store_tile_a((1u - current) * STAGE_A + a_at, next_a);
        tile_b[(1u - current) * STAGE_B + local_index] = next_b;
    }

    let row = group.y * 128u + local.y * 8u;
    let column = group.x * 128u + local.x * 4u;
    store_c(row, column, left0);
    store_c(row, column + 64u, right0);
    store_c(row + 1u, column, left1);
    store_c(row + 1u, column + 64u, right1);
    store_c(row + 2u, column, left2);
    store_c(row + 2u, column + 64u, right2);
    store_c(row + 3u, column, left3);
    store_c(row + 3u, column + 64u, right3);
    store_c(row + 4u, column, left4);
    store_c(row + 4u, column + 64u, right4);
    store_c(row + 5u, column, left5);
    store_c(row + 5u, column + 64u, right5);
    store_c(row + 6u, column, left6);
    store_c(row + 6u, column + 64u, right6);
    store_c(row + 7u, column, left7);
    store_c(row + 7u, column + 64u, right7);
}
