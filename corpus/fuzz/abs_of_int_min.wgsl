// Clamped, widened and packed absolute values and negations: also of the smallest integer, which
// is its own negation.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<array<i32, 8>>;

@compute @workgroup_size(4)
fn abs_of_int_min(@builtin(local_invocation_index) i: u32) {
    let x = bitcast<i32>(words[i]);
    let y = bitcast<i32>(words[(i + 1u) % 4u]);
    let z = bitcast<i32>(words[(i + 2u) % 4u]);
    let short = i16(x >> 16u);
    results[i][0] = clamp(abs(x), min(y, 0i), max(y, 0i));
    results[i][1] = bitcast<i32>(pack4xI8Clamp(abs(vec4i(x, y, z, -4i))));
    results[i][2] = max(vec3i(y), abs(z * vec3i(0i, 0i, -4i))).z;
    results[i][3] = clamp(abs(firstTrailingBit(x)), min(z, 2147483646i), max(z, 2147483646i));
    results[i][4] = i32(min(i16(0), (-vec4<i16>(short)).x));
    results[i][5] = i32(max(-short, i16(0)));
    results[i][6] = i32(sign(-short));
    results[i][7] = i32(-(short ^ i16(1)));
}
