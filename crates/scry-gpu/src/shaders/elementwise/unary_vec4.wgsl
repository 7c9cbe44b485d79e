// Appended to a file that defines `apply`.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < arrayLength(&x) && i < arrayLength(&y) {
        let v = x[i];
        y[i] = vec4(apply(v.x), apply(v.y), apply(v.z), apply(v.w));
    }
}
