struct Params {
    a: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<immediate> params: Params;

@compute @workgroup_size(256)
fn saxpy(
    @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let x4 = arrayLength(&y);
    let x5 = arrayLength(&x);
    let x6 = workgroup_id.x * 256u;
    let x7 = x6 + local_invocation_id.x;
    let x8 = x7 < x4;
    let x9 = x5 - 1u;
    if x8 {
        let x10 = params.a;
        let x11 = min(x7, x9);
        let x12 = x[x11];
        let x13 = x10 * x12;
        let x14 = y[x7];
        let x15 = x13 + x14;
        y[x7] = x15;
    }
}
