// The nearest points of queries, of a query by each invocation, which inserts them into a list. Preceded by
// distances.wgsl, and by
//
//     const K: u32, at least 1 and at most the number of points.

@group(0) @binding(2) var<storage, read_write> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> distances: array<f32>;

// Returns a number that orders distances; NaN is larger than all others.
fn key_of(distance: f32) -> u32 {
    return bitcast<u32>(distance) & 0x7fffffffu;
}

@compute @workgroup_size(64)
fn nearest_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.queries {
        return;
    }
    var nearest: array<f32, K>;
    var positions: array<u32, K>;
    var largest = 0u;
    for (var point = 0u; point < shape.points; point++) {
        let distance = distance_of(id.x, point);
        let key = key_of(distance);
        // The list is filled first.
        if key < largest || point < K {
            var at = min(point, K - 1u);
            while at > 0u && key < key_of(nearest[at - 1u]) {
                nearest[at] = nearest[at - 1u];
                positions[at] = positions[at - 1u];
                at--;
            }
            nearest[at] = distance;
            positions[at] = point;
            largest = key_of(nearest[K - 1u]);
        }
    }
    for (var nth = 0u; nth < K; nth++) {
        indices[id.x * K + nth] = positions[nth];
        distances[id.x * K + nth] = nearest[nth];
    }
}
