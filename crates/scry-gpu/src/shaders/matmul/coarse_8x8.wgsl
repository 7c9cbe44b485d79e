// C = A × B in tiles of 128×128: 256 invocations, each with 8×8 elements of C in registers.
// Both operands pass through workgroup memory 8 deep, in two stages: while one is being
// multiplied the next is on its way, and one barrier a step is enough. The eight columns of an
// invocation are two quads 64 apart, so that neighbours read neighbouring words.

const DEPTH: u32 = 8u;
const STAGE: u32 = 256u;

var<workgroup> tile_a: array<vec4<f32>, 512>;
var<workgroup> tile_b: array<vec4<f32>, 512>;

// Adds four terms of an inner product to four neighbouring elements of C.
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
    @builtin(local_invocation_index) lane: u32,
) {
    // A's stage is 128 rows of 2 quads, B's 8 rows of 32 quads; each invocation brings one quad.
    let a_row = group.y * 128u + lane / 2u;
    let a_column = (lane % 2u) * 4u;
    let b_row = lane / 32u;
    let b_column = group.x * 128u + (lane % 32u) * 4u;
    let steps = (shape.k + DEPTH - 1u) / DEPTH;

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

    tile_a[lane] = load_a(a_row, a_column);
    tile_b[lane] = load_b(b_row, b_column);
    for (var step = 0u; step < steps; step++) {
        workgroupBarrier();
        let here = (step & 1u) * STAGE;
        let next = (step + 1u) * DEPTH;
        let next_a = load_a(a_row, next + a_column);
        let next_b = load_b(next + b_row, b_column);

        for (var quad = 0u; quad < 2u; quad++) {
            let rows = here + local.y * 16u + quad;
            let a0 = tile_a[rows];
            let a1 = tile_a[rows + 2u];
            let a2 = tile_a[rows + 4u];
            let a3 = tile_a[rows + 6u];
            let a4 = tile_a[rows + 8u];
            let a5 = tile_a[rows + 10u];
            let a6 = tile_a[rows + 12u];
            let a7 = tile_a[rows + 14u];

            let columns = here + quad * 128u + local.x;
            {
                let b0 = tile_b[columns];
                let b1 = tile_b[columns + 32u];
                let b2 = tile_b[columns + 64u];
                let b3 = tile_b[columns + 96u];
                left0 = accumulate(left0, a0, b0, b1, b2, b3);
                left1 = accumulate(left1, a1, b0, b1, b2, b3);
                left2 = accumulate(left2, a2, b0, b1, b2, b3);
                left3 = accumulate(left3, a3, b0, b1, b2, b3);
                left4 = accumulate(left4, a4, b0, b1, b2, b3);
                left5 = accumulate(left5, a5, b0, b1, b2, b3);
                left6 = accumulate(left6, a6, b0, b1, b2, b3);
                left7 = accumulate(left7, a7, b0, b1, b2, b3);
            }
            {
                let b0 = tile_b[columns + 16u];
                let b1 = tile_b[columns + 48u];
                let b2 = tile_b[columns + 80u];
                let b3 = tile_b[columns + 112u];
                right0 = accumulate(right0, a0, b0, b1, b2, b3);
                right1 = accumulate(right1, a1, b0, b1, b2, b3);
                right2 = accumulate(right2, a2, b0, b1, b2, b3);
                right3 = accumulate(right3, a3, b0, b1, b2, b3);
                right4 = accumulate(right4, a4, b0, b1, b2, b3);
                right5 = accumulate(right5, a5, b0, b1, b2, b3);
                right6 = accumulate(right6, a6, b0, b1, b2, b3);
                right7 = accumulate(right7, a7, b0, b1, b2, b3);
            }
        }
        tile_a[STAGE - here + lane] = next_a;
        tile_b[STAGE - here + lane] = next_b;
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
