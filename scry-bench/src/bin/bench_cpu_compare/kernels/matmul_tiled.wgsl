// C = A · B by 16×16 tiles in workgroup memory, any size.

const TILE = 16u;

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

var<workgroup> tile_a: array<array<f32, TILE>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn matmul(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    var sum = 0.0;
    let tiles = (shape.k + TILE - 1u) / TILE;
    for (var t = 0u; t < tiles; t++) {
        let across = t * TILE + local.x;
        let down = t * TILE + local.y;
        tile_a[local.y][local.x] = 0.0;
        tile_b[local.y][local.x] = 0.0;
        if id.y < shape.m && across < shape.k {
            tile_a[local.y][local.x] = a[id.y * shape.k + across];
        }
        if down < shape.k && id.x < shape.n {
            tile_b[local.y][local.x] = b[down * shape.n + id.x];
        }
        workgroupBarrier();
        for (var i = 0u; i < TILE; i++) {
            sum = fma(tile_a[local.y][i], tile_b[i][local.x], sum);
        }
        workgroupBarrier();
    }
    if id.y < shape.m && id.x < shape.n {
        c[id.y * shape.n + id.x] = sum;
    }
}
