// y = x² + NONCE, a number that is replaced in each source, so that no cache contains the kernel.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn fresh(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) {
        y[id.x] = x[id.x] * x[id.x] + NONCE;
    }
}
