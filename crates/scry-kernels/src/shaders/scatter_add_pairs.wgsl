// Makes pairs of indices, the targets, and their positions, the sources, to be sorted. Indices out of
// range become `rows`.

struct Shape {
    rows: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read_write> targets: array<u32>;
@group(0) @binding(2) var<storage, read_write> sources: array<u32>;

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn make_pairs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let nth = group.x * 256u + local_index;
    if nth < shape.count {
        targets[nth] = min(indices[nth], shape.rows);
        sources[nth] = nth;
    }
}
