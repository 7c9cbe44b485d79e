// Clears a buffer, four vectors of it per invocation.

struct Parameters {
    // Vectors to clear.
    count: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read_write> words: array<vec4<u32>>;

@compute @workgroup_size(256)
fn clear(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 4u; nth++) {
        let at = (group.x * 4u + nth) * 256u + local_index;
        if at < parameters.count {
            words[at] = vec4<u32>();
        }
    }
}
