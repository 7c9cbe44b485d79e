// Arithmetic that hardware leaves undefined and WGSL does not.
// Binding 0: input, vec4<i32> of 7, 0, -2147483648, -1. Binding 1: amount, one u32: 35.
// Binding 2: out, 12 words as i32. One workgroup of 1.
// out = 7 (7 / 0), 0 (7 % 0), -2147483648 (MIN / -1), 0 (MIN % -1), 56 (7 << 35, that is << 3),
//       -268435456 (MIN >> 35), 56, 0, -268435456, -1 (the vector's components, << 35, << 35,
//       >> 35, >> 35), 2147483520 (i32 of 1e30), -2147483648 (i32 of -1e30).

@group(0) @binding(0) var<storage, read> input: vec4i;
@group(0) @binding(1) var<storage, read> amount: u32;
@group(0) @binding(2) var<storage, read_write> out: array<i32>;

@compute @workgroup_size(1)
fn main() {
    out[0] = input.x / input.y;
    out[1] = input.x % input.y;
    out[2] = input.z / input.w;
    out[3] = input.z % input.w;
    out[4] = input.x << amount;
    out[5] = input.z >> amount;
    let left = input.xy << vec2u(amount);
    let right = input.zw >> vec2u(amount);
    out[6] = left.x;
    out[7] = left.y;
    out[8] = right.x;
    out[9] = right.y;
    let huge = f32(input.x) * 1e30;
    out[10] = i32(huge);
    out[11] = i32(-huge);
}
