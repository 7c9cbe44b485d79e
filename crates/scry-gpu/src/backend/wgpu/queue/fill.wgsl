// Fills with a pattern other than zero, for which WebGPU has no command.

struct Parameters {
    // First word in the window.
    first: u32,
    // Number of words.
    count: u32,
    pattern: u32,
    padding: u32,
}

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;

@compute @workgroup_size(256)
fn fill_words(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < parameters.count {
        dst[parameters.first + id.x] = parameters.pattern;
    }
}
