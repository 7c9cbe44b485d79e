// Copies elements to their permuted positions, one by one: for axes whose last one stays the last,
// so that loads and stores are contiguous, and for tiny matrices. Preceded by
//
//     alias Granule: one element, or several that stay together;
//     struct Shape { granules: u32, .. }, with the sizes and strides of the axes;
//     fn x_position(granule: u32) -> u32.

@group(0) @binding(0) var<storage, read> x: array<Granule>;
@group(0) @binding(1) var<storage, read_write> y: array<Granule>;

var<immediate> shape: Shape;

@compute @workgroup_size(256)
fn permute_elements(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first = group.x * 1024u + local_index;
    // Loads are unconditional, so that they are in flight together.
    let a = x[x_position(first)];
    let b = x[x_position(first + 256u)];
    let c = x[x_position(first + 512u)];
    let d = x[x_position(first + 768u)];
    if first < shape.granules {
        y[first] = a;
    }
    if first + 256u < shape.granules {
        y[first + 256u] = b;
    }
    if first + 512u < shape.granules {
        y[first + 512u] = c;
    }
    if first + 768u < shape.granules {
        y[first + 768u] = d;
    }
}
