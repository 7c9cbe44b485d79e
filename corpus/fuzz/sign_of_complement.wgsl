// The sign of a complement, beside a 64-bit remainder.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn sign_of_complement(@builtin(global_invocation_id) id: vec3u) {
    let x = bitcast<i32>(words[id.x]);
    let rest = 77li % i64(x);
    let short = max(vec3<i16>(i16(x >> 16u)), vec3<i16>(i16(1)));
    let long = i64(x) << 4u;
    results[id.x] = vec4i(
        select(0i, 1i, x > sign(~x)),
        vec3i(sign(~short)).y,
        i32(sign(~long)) * i32(sign(long)),
        i32(rest),
    );
}
