// Conversions that change width and signedness extend by the sign of the operand type.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4<u64>>;

@compute @workgroup_size(4)
fn widening_signedness(@builtin(global_invocation_id) id: vec3u) {
    let word = words[id.x];
    let pair = vec2u(word, ~word);
    results[id.x] = vec4<u64>(
        u64(bitcast<i32>(word)),
        bitcast<u64>(i64(word)),
        vec2<u64>(vec2<i64>(pair)).y,
        vec2<u64>(bitcast<vec2i>(pair)).y,
    );
}
