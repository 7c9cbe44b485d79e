// C = A × B in tiles of 128×128: 8 subgroups of 32, each with a part of 64×32, which is 4×2 cooperative
// matrices of 16×16 with f32 accumulators. Both operands are staged in workgroup memory, 32 of K at a
// time, double-buffered: the next stage is loaded into registers while one is multiplied, so one
// barrier per stage is enough. Rows are padded by 8 elements, which avoids bank conflicts.
//
// Appended to cooperative_f16_io_scalar.wgsl or cooperative_f16_io_vec4.wgsl, which define `shape`,
// `load_a`, `load_b` and `mask_a`.

alias MatrixA = coop_mat16x16<f16, A>;
alias MatrixB = coop_mat16x16<f16, B>;
alias MatrixC = coop_mat16x16<f32, C>;

const TILE_K: u32 = 32u;
// Elements from one row to the next: 32 + 8 and 128 + 8.
const STRIDE_A: u32 = 40u;
const STRIDE_B: u32 = 136u;
// Elements per stage: 128 rows of A, and 32 rows of B.
const STAGE_A: u32 = 5120u;
const STAGE_B: u32 = 4352u;

// Two stages each.
var<workgroup> tile_a: array<f16, 10240>;
var<workgroup> tile_b: array<f16, 8704>;
// A matrix of 16×16 for each of two subgroups, for tiles that are partly outside of C.
var<workgroup> partial: array<f32, 512>;

// Returns the elements, or zeros if the row is past k.
fn mask_b(row: u32, value: vec4<f16>) -> vec4<f16> {
    return select(vec4<f16>(), value, row < shape.k);
}

fn stage_a(at: u32, value: vec4<f16>) {
    tile_a[at] = value.x;
    tile_a[at + 1u] = value.y;
    tile_a[at + 2u] = value.z;
    tile_a[at + 3u] = value.w;
}

fn stage_b(at: u32, value: vec4<f16>) {
    tile_b[at] = value.x;
    tile_b[at + 1u] = value.y;
    tile_b[at + 2u] = value.z;
    tile_b[at + 3u] = value.w;
}

// Stores the elements of a matrix that are inside of C, two subgroups at a time, which saves
// workgroup memory. All invocations of the workgroup must call it.
fn store_partial(sum: MatrixC, subgroup: u32, lane: u32, row: u32, column: u32) {
    let first = (subgroup & 1u) * 256u;
    let at_column = column + lane % 16u;
    for (var pair = 0u; pair < 4u; pair++) {
        if pair == subgroup >> 1u {
            coopStoreT(sum, &partial[first], 16u);
        }
        workgroupBarrier();
        if pair == subgroup >> 1u {
            for (var i = 0u; i < 8u; i++) {
                let at_row = row + lane / 16u + i * 2u;
                if at_row < shape.m && at_column < shape.n {
                    c[at_row * shape.n + at_column] = partial[first + lane + i * 32u];
                }
            }
        }
        workgroupBarrier();
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup_id: u32,
    @builtin(subgroup_invocation_id) lane_id: u32,
) {
    // Ids are below 8 and 32 anyway; the masks let the compiler see that no access needs a bounds
    // check.
    let subgroup = subgroup_id & 7u;
    let lane = lane_id & 31u;

    // A's stage is 128 rows of 8 quads, B's 32 rows of 32 quads; each invocation loads four of each.
    let a_row = index / 8u;
    let a_column = (index % 8u) * 4u;
    let b_row = index / 32u;
    let b_column = (index % 32u) * 4u;
    let a_to = a_row * STRIDE_A + a_column;
    let b_to = b_row * STRIDE_B + b_column;
    let first_row = group.y * 128u;
    let first_column = group.x * 128u;
    let a_from = first_row + a_row;
    let b_from = first_column + b_column;

    // The part of this subgroup.
    let part_row = (subgroup & 1u) * 64u;
    let part_column = (subgroup >> 1u) * 32u;
    let stages = (shape.k + TILE_K - 1u) / TILE_K;

    var c00 = MatrixC();
    var c01 = MatrixC();
    var c10 = MatrixC();
    var c11 = MatrixC();
    var c20 = MatrixC();
    var c21 = MatrixC();
    var c30 = MatrixC();
    var c31 = MatrixC();

    stage_a(a_to + 0u * STRIDE_A, mask_a(a_column, load_a(a_from + 0u, a_column)));
    stage_a(a_to + 32u * STRIDE_A, mask_a(a_column, load_a(a_from + 32u, a_column)));
    stage_a(a_to + 64u * STRIDE_A, mask_a(a_column, load_a(a_from + 64u, a_column)));
    stage_a(a_to + 96u * STRIDE_A, mask_a(a_column, load_a(a_from + 96u, a_column)));
    stage_b(b_to + 0u * STRIDE_B, mask_b(b_row + 0u, load_b(b_row + 0u, b_from)));
    stage_b(b_to + 8u * STRIDE_B, mask_b(b_row + 8u, load_b(b_row + 8u, b_from)));
    stage_b(b_to + 16u * STRIDE_B, mask_b(b_row + 16u, load_b(b_row + 16u, b_from)));
    stage_b(b_to + 24u * STRIDE_B, mask_b(b_row + 24u, load_b(b_row + 24u, b_from)));
    for (var stage = 0u; stage < stages; stage++) {
        workgroupBarrier();
        let current = stage & 1u;
        let k = (stage + 1u) * TILE_K;
        let next_a0 = load_a(a_from + 0u, k + a_column);
        let next_a1 = load_a(a_from + 32u, k + a_column);
        let next_a2 = load_a(a_from + 64u, k + a_column);
        let next_a3 = load_a(a_from + 96u, k + a_column);
        let next_b0 = load_b(k + b_row + 0u, b_from);
        let next_b1 = load_b(k + b_row + 8u, b_from);
        let next_b2 = load_b(k + b_row + 16u, b_from);
        let next_b3 = load_b(k + b_row + 24u, b_from);

        let rows = current * STAGE_A + part_row * STRIDE_A;
        let columns = current * STAGE_B + part_column;
        for (var step = 0u; step < 2u; step++) {
            let from_a = rows + step * 16u;
            let from_b = columns + step * 16u * STRIDE_B;
            let b0 = coopLoadT<MatrixB>(&tile_b[from_b + 0u], STRIDE_B);
            let b1 = coopLoadT<MatrixB>(&tile_b[from_b + 16u], STRIDE_B);
            let a0 = coopLoadT<MatrixA>(&tile_a[from_a + 0u * STRIDE_A], STRIDE_A);
            c00 = coopMultiplyAdd(a0, b0, c00);
            c01 = coopMultiplyAdd(a0, b1, c01);
            let a1 = coopLoadT<MatrixA>(&tile_a[from_a + 16u * STRIDE_A], STRIDE_A);
            c10 = coopMultiplyAdd(a1, b0, c10);
            c11 = coopMultiplyAdd(a1, b1, c11);
            let a2 = coopLoadT<MatrixA>(&tile_a[from_a + 32u * STRIDE_A], STRIDE_A);
            c20 = coopMultiplyAdd(a2, b0, c20);
            c21 = coopMultiplyAdd(a2, b1, c21);
            let a3 = coopLoadT<MatrixA>(&tile_a[from_a + 48u * STRIDE_A], STRIDE_A);
            c30 = coopMultiplyAdd(a3, b0, c30);
            c31 = coopMultiplyAdd(a3, b1, c31);
        }

        let to_a = a_to + (1u - current) * STAGE_A;
        let to_b = b_to + (1u - current) * STAGE_B;
        // Only the last stage may extend past k; the others need no masks.
        if k + TILE_K <= shape.k {
            stage_a(to_a + 0u * STRIDE_A, next_a0);
            stage_a(to_a + 32u * STRIDE_A, next_a1);
            stage_a(to_a + 64u * STRIDE_A, next_a2);
            stage_a(to_a + 96u * STRIDE_A, next_a3);
            stage_b(to_b + 0u * STRIDE_B, next_b0);
            stage_b(to_b + 8u * STRIDE_B, next_b1);
            stage_b(to_b + 16u * STRIDE_B, next_b2);
            stage_b(to_b + 24u * STRIDE_B, next_b3);
        } else {
            stage_a(to_a + 0u * STRIDE_A, mask_a(k + a_column, next_a0));
            stage_a(to_a + 32u * STRIDE_A, mask_a(k + a_column, next_a1));
            stage_a(to_a + 64u * STRIDE_A, mask_a(k + a_column, next_a2));
            stage_a(to_a + 96u * STRIDE_A, mask_a(k + a_column, next_a3));
            stage_b(to_b + 0u * STRIDE_B, mask_b(k + b_row + 0u, next_b0));
            stage_b(to_b + 8u * STRIDE_B, mask_b(k + b_row + 8u, next_b1));
            stage_b(to_b + 16u * STRIDE_B, mask_b(k + b_row + 16u, next_b2));
            stage_b(to_b + 24u * STRIDE_B, mask_b(k + b_row + 24u, next_b3));
        }
    }

    let row = first_row + part_row;
    let column = first_column + part_column;
    if first_row + 128u <= shape.m && first_column + 128u <= shape.n {
        let to = row * shape.n + column;
        coopStoreT(c00, &c[to + 0u * shape.n + 0u], shape.n);
        coopStoreT(c01, &c[to + 0u * shape.n + 16u], shape.n);
        coopStoreT(c10, &c[to + 16u * shape.n + 0u], shape.n);
        coopStoreT(c11, &c[to + 16u * shape.n + 16u], shape.n);
        coopStoreT(c20, &c[to + 32u * shape.n + 0u], shape.n);
        coopStoreT(c21, &c[to + 32u * shape.n + 16u], shape.n);
        coopStoreT(c30, &c[to + 48u * shape.n + 0u], shape.n);
        coopStoreT(c31, &c[to + 48u * shape.n + 16u], shape.n);
    } else {
        store_partial(c00, subgroup, lane, row + 0u, column + 0u);
        store_partial(c01, subgroup, lane, row + 0u, column + 16u);
        store_partial(c10, subgroup, lane, row + 16u, column + 0u);
        store_partial(c11, subgroup, lane, row + 16u, column + 16u);
        store_partial(c20, subgroup, lane, row + 32u, column + 0u);
        store_partial(c21, subgroup, lane, row + 32u, column + 16u);
        store_partial(c30, subgroup, lane, row + 48u, column + 0u);
        store_partial(c31, subgroup, lane, row + 48u, column + 16u);
    }
}
