// The largest elements of rows, of a row by each invocation, which inserts them into a list. Preceded by the
// elements' definitions and order, and by
//
//     const K: u32, at least 1.

struct Parameters {
    rows: u32,
    columns: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> values: array<Stored>;
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;

fn key_of(value: Computed) -> u32 {
    return select(ordinal_of_equal_zeros(value), 0xffffffffu, is_nan(value));
}

@compute @workgroup_size(64)
fn top_k_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= parameters.rows {
        return;
    }
    let start = id.x * parameters.columns;
    var keys: array<u32, K>;
    var positions: array<u32, K>;
    var least = 0u;
    for (var column = 0u; column < parameters.columns; column++) {
        let key = key_of(widen(x[start + column]));
        // The list is filled first.
        if key > least || column < K {
            var at = min(column, K - 1u);
            while at > 0u && key > keys[at - 1u] {
                keys[at] = keys[at - 1u];
                positions[at] = positions[at - 1u];
                at--;
            }
            keys[at] = key;
            positions[at] = column;
            least = keys[K - 1u];
        }
    }
    for (var nth = 0u; nth < K; nth++) {
        let position = positions[nth];
        values[id.x * K + nth] = x[start + position];
        indices[id.x * K + nth] = position;
    }
}
