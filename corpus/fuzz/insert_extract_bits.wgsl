// Bit fields of a uniform word, at uniform and varying offsets, one bit wide and wider.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4u>;
var<private> inserted: vec2u;

@compute @workgroup_size(4)
fn insert_extract_bits(@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u) {
    let count = arrayLength(&words);
    inserted = insertBits(vec2u(1u), vec2u(402u, 0u), id.x, count);
    let signed = extractBits(1i >> group.x, id.x, 1u);
    results[id.x] = vec4u(
        extractBits(200u + count, words[id.x] + 3u, 1u),
        bitcast<u32>(signed),
        extractBits(768u + count, inserted.y, 9u),
        inserted.x,
    );
}
