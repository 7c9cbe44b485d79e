@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(0) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    a[id.x] = b[id.x];
}
