// Binding 0: data, 8 words (a runtime-sized array), word i holding 100 + i before the launch.
// Binding 1: index, one i32. Binding 2: out, 8 words of zeros. One workgroup.
// With index in 0..8: data[index] becomes 7, out[0] = 100 + index, and out[1] is the same.
// With any other index (-1, 8, 2147483647, -2147483648): exactly one word of data becomes 7, and
// out[0] and out[1] are each a word that data held. Nothing outside the three buffers changes.
// Always: out[2] = 8; out[3] is one of 100..108 or 7: it is read from far past the end.

@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read> index: i32;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(1)
fn main() {
    let u = bitcast<u32>(index);
    out[0] = data[index];
    out[1] = data[u];
    data[index] = 7u;
    out[2] = arrayLength(&data);
    out[3] = data[1073741825];
}
