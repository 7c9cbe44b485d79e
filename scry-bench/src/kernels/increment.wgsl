// Adds one to every element.

@group(0) @binding(0) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&x) {
        x[id.x] = x[id.x] + 1.0;
    }
}
