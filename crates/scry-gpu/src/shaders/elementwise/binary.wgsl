// Appended to a file that defines `apply`.

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < arrayLength(&a) && i < arrayLength(&b) && i < arrayLength(&y) {
        y[i] = apply(a[i], b[i]);
    }
}
