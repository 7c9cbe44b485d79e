// The sign of floats, beside a 64-bit remainder.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn float_sign_beside_i64_rem(@builtin(local_invocation_index) i: u32) {
    let long = i64(bitcast<i32>(words[i])) * i64(words[(i + 1u) % 4u]);
    let rest = 77li % long;
    let number = f32(words[i] % 8u) - 4.0;
    let signs = sign(vec3f(f32(i), 2.0, -1.0) - 2.0);
    results[i] = vec4i(i32(sign(number)), i32(signs.x), i32(signs.y + signs.z), i32(rest));
}
