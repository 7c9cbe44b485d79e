// Finds the last index that selects each row: clears the rows that are selected, or, unless CLEAR,
// keeps the largest number of an index, from 1 on. Preceded by
//
//     const CLEAR: bool.

struct Shape {
    rows: u32,
    count: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read_write> winners: array<atomic<u32>>;

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn scatter_winners(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let nth = group.x * 256u + local_index;
    if nth >= shape.count {
        return;
    }
    let row = indices[nth];
    if row >= shape.rows {
        return;
    }
    if CLEAR {
        atomicStore(&winners[row], 0u);
    } else {
        atomicMax(&winners[row], nth + 1u);
    }
}
