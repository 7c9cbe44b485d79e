struct Inner {
    @align(64) x: u32,
}
struct Outer {
    x: u32,
    y: Inner,
}
@group(0) @binding(0) var<storage, read_write> data: array<Outer>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x].y.x = 1u;
}
