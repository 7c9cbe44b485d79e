// Takes the first elements of sorted rows. Preceded by the elements' definitions.

struct Parameters {
    // Elements that are taken.
    count: u32,
    columns: u32,
    k: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<Stored>;
// Positions in the matrix, in the order of rows and values.
@group(0) @binding(1) var<storage, read> positions: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<Stored>;
@group(0) @binding(3) var<storage, read_write> indices: array<u32>;

@compute @workgroup_size(256)
fn take_first(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 4u; nth++) {
        let at = (group.x * 4u + nth) * 256u + local_index;
        if at < parameters.count {
            let row = at / parameters.k;
            let position = positions[row * parameters.columns + at % parameters.k];
            values[at] = x[position];
            indices[at] = position - row * parameters.columns;
        }
    }
}
