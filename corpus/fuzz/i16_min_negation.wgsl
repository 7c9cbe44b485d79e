// Negation and absolute value of the smallest 16-bit integer wrap, also in wider registers.

enable wgpu_int16;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
    let x = i16(i32(words[i]) >> 16u);
    results[i] = vec4i(i32(-x % i16(20)), i32(abs(x) / i16(3)), i32(x + x), i32(x * x - x));
}
