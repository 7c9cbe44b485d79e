// y = a·x + y.
//
//   scry run saxpy.wgsl --in x=x.npy --inout y=y.npy --immediate a=2.0 --out y=out.npy

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<immediate> a: f32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < arrayLength(&x) && i < arrayLength(&y) {
        y[i] = a * x[i] + y[i];
    }
}
