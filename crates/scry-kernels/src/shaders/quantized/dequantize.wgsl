// Converts weights to elements. Preceded by the elements' definitions and the function `weight`.

@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

var<immediate> count: u32;

@compute @workgroup_size(256)
fn dequantize(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < count {
        y[id.x] = narrow(weight(id.x));
    }
}
