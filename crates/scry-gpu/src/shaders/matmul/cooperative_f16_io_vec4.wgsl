enable f16;
enable wgpu_cooperative_matrix;

// Operands whose rows are whole `vec4`s: k and n are multiples of four.

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

// Does not check the position. In columns past k it returns elements of the next row, which
// `mask_a` replaces with zeros. Where the index is out of bounds, WGSL returns any element of A or
// zero; rows past m only affect rows of C that are not stored.
fn load_a(row: u32, column: u32) -> vec4<f16> {
    return a[row * (shape.k / 4u) + column / 4u];
}

// Likewise: `mask_b` (cooperative_f16.wgsl) replaces rows past k with zeros, and columns past n
// only affect columns of C that are not stored.
fn load_b(row: u32, column: u32) -> vec4<f16> {
    return b[row * (shape.n / 4u) + column / 4u];
}

// Returns the elements, or zeros in columns past k.
fn mask_a(column: u32, value: vec4<f16>) -> vec4<f16> {
    return select(vec4<f16>(), value, column < shape.k);
}

