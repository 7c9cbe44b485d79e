// One component of a vector expression with a quotient by a constant.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4u>;
var<private> zeros: vec4f;

@compute @workgroup_size(4)
fn component_of_quotient(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    let bits = bitcast<vec4u>(abs(zeros) + 1.0);
    results[i].x = (bits + vec4u(words[i]) / vec4u(6u)).w;
    results[i].y = (bits.xy ^ vec2u(words[i]) % vec2u(7u)).y;
    results[i].z = bitcast<u32>(vec3f(insertBits(vec3u(4096u), vec3u(i), 0u, i) % 7u).z);
    let difference = vec3i(i32(countTrailingZeros(i))) - vec3i(bitcast<i32>(words[i])) / 5i;
    results[i].w = bitcast<u32>(difference.y);
}
