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

// Outside of A, returns some elements of A: in rows past m they only affect rows of C that are not
// stored, and in columns past k `mask_a` replaces them.
fn load_a(row: u32, column: u32) -> vec4<f16> {
    return a[row * (shape.k / 4u) + column / 4u];
}

// Outside of B likewise, with `mask_b`.
fn load_b(row: u32, column: u32) -> vec4<f16> {
    return b[row * (shape.n / 4u) + column / 4u];
}

// Returns the elements, with zeros in columns past k.
fn mask_a(column: u32, value: vec4<f16>) -> vec4<f16> {
    return select(vec4<f16>(), value, column < shape.k);
}

