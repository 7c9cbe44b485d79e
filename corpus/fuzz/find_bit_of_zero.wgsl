// firstLeadingBit and firstTrailingBit of zero, which are -1, and arithmetic on the result.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn find_bit_of_zero(@builtin(global_invocation_id) id: vec3u) {
    let zero = 0i;
    let known = firstLeadingBit(vec2i(zero)) % 5i;
    let signed = firstLeadingBit(vec2i(bitcast<i32>(words[id.x]))) % 5i;
    let trailing = bitcast<vec2i>(firstTrailingBit(vec2u(words[id.x]))) / 2i;
    results[id.x] = vec4i(known.y, signed.x, trailing.y, countLeadingZeros(zero) / 32i);
}
