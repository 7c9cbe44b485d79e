// Elements selected by indices, one by each invocation. Preceded by the definition of `Granule`.

struct Shape {
    len: u32,
    count: u32,
}

var<immediate> shape: Shape;

@group(0) @binding(0) var<storage, read> x: array<Granule>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<Granule>;

@compute @workgroup_size(64)
fn gather_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.count {
        return;
    }
    let index = indices[id.x];
    var value = Granule(0);
    if index < shape.len {
        value = x[index];
    }
    y[id.x] = value;
}
