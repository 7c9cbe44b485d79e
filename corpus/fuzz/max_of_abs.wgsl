// Minimum, maximum and clamp of absolute values.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn max_of_abs(@builtin(local_invocation_index) i: u32) {
    let x = bitcast<i32>(words[i]);
    let y = bitcast<i32>(words[(i + 1u) % 4u]);
    let z = bitcast<i32>(words[(i + 2u) % 4u]);
    results[i] = vec4i(
        max(abs(x), min(0i, y)),
        clamp(abs(vec4i(x)).xy, min(vec2i(y), vec2i(z)), max(vec2i(y), vec2i(z))).y,
        min(max(max(x, -x), y), z),
        max(firstTrailingBit(y), abs(firstTrailingBit(x))),
    );
}
