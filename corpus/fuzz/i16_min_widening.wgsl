// Absolute value and negation of the smallest 16-bit integer wrap before they are widened.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn i16_min_widening(@builtin(global_invocation_id) id: vec3u) {
    let x = i16(bitcast<i32>(words[id.x]) >> 16u);
    let rest = 77li % i64(words[id.x]);
    results[id.x] = vec4i(i32(i64(abs(x)) >> 3u), i32(-x >> 3u), abs(i32(x)), i32(rest));
}
