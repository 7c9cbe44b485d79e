// y = 2 · x of an image.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<immediate> size: vec2u;

@compute @workgroup_size(SHAPE)
fn double(@builtin(global_invocation_id) id: vec3u) {
    if id.x < size.x && id.y < size.y {
        let i = id.y * size.x + id.x;
        y[i] = 2.0 * x[i];
    }
}
