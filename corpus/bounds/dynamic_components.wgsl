// Vector and matrix components in buffers, chosen at run time: what hardware checks do not cover.
// Binding 0: v, a vec4<u32> of 1, 2, 3, 4. Binding 1: m, a mat3x4<f32> whose column c, row r is
// 10 * c + r. Binding 2: u, a uniform: vec2<u32> of 5, 6 at offset 0 and a mat2x2<f32> of
// (1, 2), (3, 4) at offset 8. Binding 3: out, 48 words of zeros. One workgroup of 1.
// For i in 0..8, with k = min(i, last):
//   out[i]      = v[k] + 1                                   (last = 3)
//   out[8 + i]  = 5 + min(i, 1)                              (uniform vector)
//   out[16 + i] = u32(m[min(i, 2)][min(i, 3)]) = 10 * min(i, 2) + min(i, 3)
//   out[24 + i] = 1 + 2 * min(i, 1) + min(i, 1)              (uniform 2x2 matrix, both indices)
//   out[32 + i] = 9                                          (a marker: every store is made)
// Afterwards v[3] was written last with 7 and v[0..3] with 7 too: v is 7, 7, 7, 7.

struct Small {
    pair: vec2u,
    square: mat2x2f,
}

@group(0) @binding(0) var<storage, read_write> v: vec4u;
@group(0) @binding(1) var<storage, read> m: mat3x4f;
@group(0) @binding(2) var<uniform> u: Small;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(1)
fn main() {
    for (var i = 0u; i < 8u; i++) {
        out[i] = v[i] + 1u;
        out[8u + i] = u.pair[i];
        out[16u + i] = u32(m[i][i]);
        out[24u + i] = u32(u.square[i][i]);
        out[32u + i] = 9u;
    }
    for (var i = 0u; i < 8u; i++) {
        v[i] = 7u;
    }
}
