// Matrices in uniform and storage buffers, columns and components chosen at run time.

struct Camera {
    flat: mat2x2f,
    turn: mat3x3f,
    view: mat4x4f,
    chosen: u32,
}

struct Out {
    by_turn: vec3f,
    by_view: vec4f,
    column: vec2f,
    component: f32,
}

@group(0) @binding(0) var<uniform> camera: Camera;
@group(0) @binding(1) var<storage, read> points: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<Out>;
@group(0) @binding(3) var<storage, read_write> sums: mat3x4f;

@compute @workgroup_size(32)
fn transform(@builtin(global_invocation_id) id: vec3u) {
    let p = points[id.x];
    var o: Out;
    o.by_turn = camera.turn * p.xyz;
    o.by_view = transpose(camera.view) * p;
    o.column = camera.flat[camera.chosen];
    o.component = camera.view[camera.chosen][id.x % 7u];
    out[id.x] = o;
    if id.x == 0u {
        sums[camera.chosen] += p;
        sums[1][camera.chosen] = determinant(camera.turn);
    }
}
