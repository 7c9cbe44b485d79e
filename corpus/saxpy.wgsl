// y = a * x + y; the factor is an immediate.

struct Params {
    a: f32,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i < arrayLength(&y) {
        y[i] = params.a * x[i] + y[i];
    }
}
