// The keys by which elements are sorted in descending order. Preceded by the elements' definitions and
// order.

struct Parameters {
    count: u32,
    columns: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;

@compute @workgroup_size(256)
fn make_keys(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 4u; nth++) {
        let at = (group.x * 4u + nth) * 256u + local_index;
        if at < parameters.count {
            let value = widen(x[at]);
            keys[at] = ~select(ordinal_of_equal_zeros(value), 0xffffffffu, is_nan(value));
        }
    }
}
