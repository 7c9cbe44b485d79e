// The nearest five points: one query for each invocation, which inserts into a list.

struct Sizes { queries: u32, points: u32, dim: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> points: array<f32>;
@group(0) @binding(1) var<storage, read> queries: array<f32>;
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> distances: array<f32>;

const K = 5u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.queries {
        return;
    }
    var least: array<f32, K>;
    var positions: array<u32, K>;
    for (var i = 0u; i < K; i++) {
        least[i] = 3.0e38;
    }
    for (var point = 0u; point < sizes.points; point++) {
        var distance = 0.0;
        for (var i = 0u; i < sizes.dim; i++) {
            let difference = queries[id.x * sizes.dim + i] - points[point * sizes.dim + i];
            distance += difference * difference;
        }
        if distance < least[K - 1u] {
            var at = K - 1u;
            while at > 0u && distance < least[at - 1u] {
                least[at] = least[at - 1u];
                positions[at] = positions[at - 1u];
                at--;
            }
            least[at] = distance;
            positions[at] = point;
        }
    }
    for (var i = 0u; i < K; i++) {
        distances[id.x * K + i] = least[i];
        indices[id.x * K + i] = positions[i];
    }
}
