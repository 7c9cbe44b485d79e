// Bits of a float that the compiler knows, and a quotient by a number that it knows.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4u>;
var<private> zeros: vec4f;

@compute @workgroup_size(4)
fn quotient(@builtin(global_invocation_id) id: vec3u) {
    let bits = bitcast<vec4u>(abs(zeros) + 1.0);
    results[id.x].w = words[id.x];
    let sum = bits + vec4u(results[id.x].w) / vec4u(6u);
    results[id.x] = vec4u(sum.w, sum.x, words[id.x] / 6u, words[id.x] % 6u);
}
