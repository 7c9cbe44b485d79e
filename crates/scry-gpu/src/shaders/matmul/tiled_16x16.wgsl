// C = A × B, one element of C for each invocation, operands staged in 16×16 tiles.

const TILE: u32 = 16u;

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

var<workgroup> tile_a: array<f32, 256>;
var<workgroup> tile_b: array<f32, 256>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let row = group.y * TILE + local.y;
    let column = group.x * TILE + local.x;
    let steps = (shape.k + TILE - 1u) / TILE;
    var sum = 0.0;
    for (var step = 0u; step < steps; step++) {
        let a_column = step * TILE + local.x;
        let b_row = step * TILE + local.y;
        var a_value = 0.0;
        var b_value = 0.0;
        if row < shape.m && a_column < shape.k {
            a_value = a[row * shape.k + a_column];
        }
        if b_row < shape.k && column < shape.n {
            b_value = b[b_row * shape.n + column];
        }
        tile_a[local_index] = a_value;
        tile_b[local_index] = b_value;
        workgroupBarrier();
        for (var i = 0u; i < TILE; i++) {
            sum = fma(tile_a[local.y * TILE + i], tile_b[i * TILE + local.x], sum);
        }
        workgroupBarrier();
    }
    if row < shape.m && column < shape.n {
        c[row * shape.n + column] = sum;
    }
}
