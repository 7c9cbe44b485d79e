// Division by 16-bit integers that are clamped to at most, or at least, zero.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn i16_min_max_zero(@builtin(local_invocation_index) i: u32) {
    let x = i16(bitcast<i32>(words[i]) >> 16u);
    let y = i16(bitcast<i32>(words[i]));
    let z = vec3<u16>(u16(words[(i + 1u) % 4u]));
    let most = min(i16(0), y);
    results[i] = vec4i(
        i32(i16(77) / min(i16(0), x)),
        i32((vec3<i16>(i16(77)) % max(vec3<i16>(i16(0)), vec3<i16>(y))).y),
        i32((vec3<u16>(u16(77)) / max(vec3<u16>(u16(0)), z)).z),
        i32(select(most, i16(1), most == i16(0))),
    );
}
