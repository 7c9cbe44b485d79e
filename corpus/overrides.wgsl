// Overrides in the workgroup size, in an array length and in arithmetic.

override X: u32 = 4;
override Y: u32 = X * 2;
override SCALE: f32 = 0.5;
@id(7) override FLIP: bool = false;

@group(0) @binding(0) var<storage, read_write> data: array<f32>;

var<workgroup> tile: array<f32, X * Y>;

@compute @workgroup_size(X, Y)
fn overrides(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_index) at: u32,
) {
    tile[at] = data[id.y * X + id.x] * SCALE;
    workgroupBarrier();
    let source = select(at, X * Y - 1u - at, FLIP);
    data[id.y * X + id.x] = tile[source];
}
