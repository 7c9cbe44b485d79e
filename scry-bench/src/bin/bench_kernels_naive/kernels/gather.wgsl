// Elements selected by indices: one for each invocation.

struct Sizes { len: u32, count: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.count {
        return;
    }
    let index = indices[id.x];
    var value = 0.0;
    if index < sizes.len {
        value = x[index];
    }
    y[id.x] = value;
}
