// Makes pairs of indices and their numbers, to be sorted. Indices out of range become `rows`.

struct Shape {
    rows: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read_write> pairs: array<vec2<u32>>;

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn index_pairs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let nth = group.x * 256u + local_index;
    if nth < shape.count {
        pairs[nth] = vec2<u32>(min(indices[nth], shape.rows), nth);
    }
}
