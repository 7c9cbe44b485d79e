// unpack4x8 of a bool and of packed values, beside a determinant of signs.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(1)
fn unpack4x8_of_packed(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    let word = words[i];
    let directions = sign(vec3f(f32(word), f32(i) - 1.0, -2.0));
    if bool(determinant(mat3x3f(sign(vec3f(1.0)), directions * 2.0, directions))) {
        results[i] /= vec4i(1i);
    }
    let bits = unpack4xI8(u32((word & 1u) == 1u));
    let packed = unpack4xU8(pack4xI8(vec4i(bitcast<i32>(word))) ^ pack4xU8Clamp(vec4u(word)));
    results[i] = bits + bitcast<vec4i>(packed) * 4i + unpack4xI8(pack4xI8Clamp(vec4i(i32(i) - 130i)));
}
