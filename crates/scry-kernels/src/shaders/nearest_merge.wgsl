// Merges the lists of a query, one query per workgroup. Preceded by
//
//     struct Shape { lists_per_query: u32 }
//
// and nearest_list.wgsl.

@group(0) @binding(0) var<storage, read> lists: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> distances: array<f32>;

var<immediate> shape: Shape;

// The first elements of the invocations' lists.
var<workgroup> heads: array<vec2<u32>, 256>;

fn is_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

@compute @workgroup_size(256)
fn merge_nearest(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    // Each invocation merges some lists.
    clear_list();
    for (var list = local_index; list < shape.lists_per_query; list += 256u) {
        for (var nth = 0u; nth < K; nth++) {
            let entry = lists[(group.x * shape.lists_per_query + list) * K + nth];
            if entry.x > farthest() {
                break;
            }
            insert(entry.x, entry.y);
        }
    }
    // The smallest of the first elements is the next result.
    for (var nth = 0u; nth < K; nth++) {
        let own = nearest();
        heads[local_index] = own;
        workgroupBarrier();
        for (var distance = 128u; distance > 0u; distance /= 2u) {
            if local_index < distance {
                let other = heads[local_index + distance];
                if is_before(other, heads[local_index]) {
                    heads[local_index] = other;
                }
            }
            workgroupBarrier();
        }
        let first = heads[0];
        workgroupBarrier();
        if all(first == own) {
            remove_nearest();
        }
        if local_index == 0u {
            indices[group.x * K + nth] = first.y;
            distances[group.x * K + nth] = bitcast<f32>(first.x);
        }
    }
}
