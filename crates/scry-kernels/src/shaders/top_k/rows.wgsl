// The rows of elements, by their positions in the matrix.

struct Parameters {
    count: u32,
    columns: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> positions: array<u32>;
@group(0) @binding(1) var<storage, read_write> rows: array<u32>;

@compute @workgroup_size(256)
fn make_rows(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 4u; nth++) {
        let at = (group.x * 4u + nth) * 256u + local_index;
        if at < parameters.count {
            rows[at] = positions[at] / parameters.columns;
        }
    }
}
