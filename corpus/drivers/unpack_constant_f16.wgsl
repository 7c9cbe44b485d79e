// Half floats unpacked from a word that the driver finds to be constant. Mesa 22.3.6 evaluates the
// upper half as 0 then, though its SPIR-V is right: it unpacks the same word rightly at run time.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4f>;

@compute @workgroup_size(4)
fn unpack_constant_f16(@builtin(global_invocation_id) id: vec3u) {
    let known = unpack2x16float((words[id.x] & 0u) | 0x40003c00u);
    let unknown = unpack2x16float((words[id.x] & 1u) | 0x40003c00u);
    results[id.x] = vec4f(known, unknown);
}
