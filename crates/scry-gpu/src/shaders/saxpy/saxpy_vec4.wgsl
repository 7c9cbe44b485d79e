// y = a·x + y.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
var<immediate> a: f32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < arrayLength(&x) && i < arrayLength(&y) {
        y[i] = fma(vec4(a), x[i], y[i]);
    }
}
