// Negation written as subtraction from zero.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn negation_by_subtraction(@builtin(local_invocation_index) i: u32) {
    let x = bitcast<i32>(words[i]);
    let y = bitcast<i32>(words[(i + 1u) % 4u]);
    let short = i16(x >> 16u);
    results[i] = vec4i(
        max(max(i32(y != 1i), 0i - x), sign(-x)),
        i32((i16(0) - max(short, short)) % i16(20)),
        i32(i64(i16(0) - short) >> 3u),
        i32((short - short - short) / i16(3)),
    );
}
