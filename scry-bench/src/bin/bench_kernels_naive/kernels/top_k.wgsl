// The largest ten elements of each row: one row for each invocation, which inserts into a list.

struct Sizes { rows: u32, columns: u32 }
var<immediate> sizes: Sizes;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;

const K = 10u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= sizes.rows {
        return;
    }
    var largest: array<f32, K>;
    var positions: array<u32, K>;
    for (var i = 0u; i < K; i++) {
        largest[i] = -3.0e38;
    }
    for (var column = 0u; column < sizes.columns; column++) {
        let value = x[id.x * sizes.columns + column];
        if value > largest[K - 1u] {
            var at = K - 1u;
            while at > 0u && value > largest[at - 1u] {
                largest[at] = largest[at - 1u];
                positions[at] = positions[at - 1u];
                at--;
            }
            largest[at] = value;
            positions[at] = column;
        }
    }
    for (var i = 0u; i < K; i++) {
        values[id.x * K + i] = largest[i];
        indices[id.x * K + i] = positions[i];
    }
}
