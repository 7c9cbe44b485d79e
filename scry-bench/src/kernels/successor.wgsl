// Writes one more than every element of one buffer to another.

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) && id.x < arrayLength(&y) {
        y[id.x] = x[id.x] + 1.0;
    }
}
