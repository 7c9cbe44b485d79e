// Batched GEMM with any strides: tiles of 64 × 64 results per workgroup, of which each invocation
// computes 4 × 4. Preceded by the elements' definitions, `Output` with `widen_output` and
// `narrow_output`, the bindings, `bias` of a column, and `activate`.

struct Gemm {
    m: u32,
    n: u32,
    k: u32,
    a_row: u32,
    a_column: u32,
    a_batch: u32,
    b_row: u32,
    b_column: u32,
    b_batch: u32,
    out_row: u32,
    out_column: u32,
    out_batch: u32,
    alpha: f32,
    beta: f32,
}

var<immediate> gemm: Gemm;

const TILE: u32 = 64u;
// Elements along K that are held in workgroup memory.
const DEPTH: u32 = 16u;
// Results of an invocation along each axis.
const BLOCK: u32 = 4u;

// Tiles of `a`, K by rows, and of `b`, K by columns.
var<workgroup> a_tile: array<f32, 1024>;
var<workgroup> b_tile: array<f32, 1024>;

@compute @workgroup_size(256)
fn gemm_tiles(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first_row = group.y * TILE;
    let first_column = group.x * TILE;
    let a_start = group.z * gemm.a_batch;
    let b_start = group.z * gemm.b_batch;
    let block_row = local_index / 16u * BLOCK;
    let block_column = local_index % 16u * BLOCK;
    var sums: array<vec4<f32>, 4>;
    for (var depth = 0u; depth < gemm.k; depth += DEPTH) {
        for (var nth = 0u; nth < 4u; nth++) {
            // Neighbouring invocations load neighbouring elements of the contiguous axis.
            let element = nth * 256u + local_index;
            let a_at = tile_position(element, A_BY_ROWS);
            let row = first_row + a_at.x;
            let a_k = depth + a_at.y;
            var a_value = 0.0;
            if row < gemm.m && a_k < gemm.k {
                a_value = widen(a[a_start + row * gemm.a_row + a_k * gemm.a_column]);
            }
            a_tile[a_at.y * TILE + a_at.x] = a_value;
            let b_at = tile_position(element, B_BY_COLUMNS);
            let column = first_column + b_at.x;
            let b_k = depth + b_at.y;
            var b_value = 0.0;
            if column < gemm.n && b_k < gemm.k {
                b_value = widen(b[b_start + b_k * gemm.b_row + column * gemm.b_column]);
            }
            b_tile[b_at.y * TILE + b_at.x] = b_value;
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let at = k * TILE + block_column;
            let b_values = vec4<f32>(b_tile[at], b_tile[at + 1u], b_tile[at + 2u], b_tile[at + 3u]);
            for (var row = 0u; row < BLOCK; row++) {
                sums[row] += a_tile[k * TILE + block_row + row] * b_values;
            }
        }
        workgroupBarrier();
    }
    for (var row = 0u; row < BLOCK; row++) {
        for (var column = 0u; column < BLOCK; column++) {
            let at = vec2<u32>(first_row + block_row + row, first_column + block_column + column);
            if at.x < gemm.m && at.y < gemm.n {
                store(group.z, at.x, at.y, sums[row][column]);
            }
        }
    }
}

// Returns the position of an element of a tile: along the rows of `a` or the columns of `b`, and
// along K. The first of them is contiguous in memory if `is_first_contiguous`.
fn tile_position(element: u32, is_first_contiguous: bool) -> vec2<u32> {
    if is_first_contiguous {
        return vec2<u32>(element % TILE, element / TILE);
    }
    return vec2<u32>(element / DEPTH, element % DEPTH);
}

fn store(batch: u32, row: u32, column: u32, sum: f32) {
    let at = batch * gemm.out_batch + row * gemm.out_row + column * gemm.out_column;
    var value = gemm.alpha * sum + bias(column);
    if gemm.beta != 0.0 {
        value += gemm.beta * widen_output(out[at]);
    }
    out[at] = narrow_output(activate(value));
}
