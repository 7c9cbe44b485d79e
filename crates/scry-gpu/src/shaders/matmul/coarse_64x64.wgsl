// C = A × B in tiles of 64×64: 256 invocations, each with 4×4 elements of C in registers.
// Both operands are staged in workgroup memory, 16 of K at a time, double-buffered: the next stage
// is loaded while one is multiplied, so one barrier per step is enough.
//
// Appended to io_scalar.wgsl or io_vec4.wgsl, which define `shape` and the loads and stores.

const TILE_K: u32 = 16u;
// Quads (vec4s) of an operand per stage.
const STAGE: u32 = 256u;

// Two stages each.
var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_b: array<vec4<f32>, 512>;

// Adds four terms of an inner product to four neighbouring elements of a row of C.
fn accumulate(
    sum: vec4<f32>, a: vec4<f32>, b0: vec4<f32>, b1: vec4<f32>, b2: vec4<f32>, b3: vec4<f32>,
) -> vec4<f32> {
    let first = fma(vec4(a.y), b1, fma(vec4(a.x), b0, sum));
    return fma(vec4(a.w), b3, fma(vec4(a.z), b2, first));
}

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    // A's stage is 64 rows of 4 quads, B's 16 rows of 16 quads; each invocation loads one quad.
    let a_row = group.y * 64u + local_index / 4u;
    let a_column = (local_index % 4u) * 4u;
    let b_row = local_index / 16u;
    let b_column = group.x * 64u + (local_index % 16u) * 4u;
    let steps = (shape.k + TILE_K - 1u) / TILE_K;

    var c0 = vec4<f32>();
    var c1 = vec4<f32>();
    var c2 = vec4<f32>();
    var c3 = vec4<f32>();

    tile_a[local_index] = load_a(a_row, a_column);
    tile_b[local_index] = load_b(b_row, b_column);
    for (var step = 0u; step < steps; step++) {
        workgroupBarrier();
        let current = (step & 1u) * STAGE;
        let next = (step + 1u) * TILE_K;
        let next_a = load_a(a_row, next + a_column);
        let next_b = load_b(next + b_row, b_column);

        for (var quad = 0u; quad < 4u; quad++) {
            let rows = current + local.y * 16u + quad;
            let a0 = tile_a[rows];
            let a1 = tile_a[rows + 4u];
            let a2 = tile_a[rows + 8u];
            let a3 = tile_a[rows + 12u];

            let columns = current + quad * 64u + local.x;
            let b0 = tile_b[columns];
            let b1 = tile_b[columns + 16u];
            let b2 = tile_b[columns + 32u];
            let b3 = tile_b[columns + 48u];
            c0 = accumulate(c0, a0, b0, b1, b2, b3);
            c1 = accumulate(c1, a1, b0, b1, b2, b3);
            c2 = accumulate(c2, a2, b0, b1, b2, b3);
            c3 = accumulate(c3, a3, b0, b1, b2, b3);
        }
        tile_a[STAGE - current + local_index] = next_a;
        tile_b[STAGE - current + local_index] = next_b;
    }

    let row = group.y * 64u + local.y * 4u;
    let column = group.x * 64u + local.x * 4u;
    store_c(row, column, c0);
    store_c(row + 1u, column, c1);
    store_c(row + 2u, column, c2);
    store_c(row + 3u, column, c3);
}
