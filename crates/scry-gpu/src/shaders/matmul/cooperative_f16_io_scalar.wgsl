enable f16;
enable wgpu_cooperative_matrix;

// Operands with rows of any length: four loads of single elements.

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f16>;
@group(0) @binding(1) var<storage, read> b: array<f16>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

// Does not check the position. In columns past k it returns elements of the next row, which
// `mask_a` replaces with zeros. Where the index is out of bounds, WGSL returns any element of A or
// zero; rows past m only affect rows of C that are not stored.
fn load_a(row: u32, column: u32) -> vec4<f16> {
    let at = row * shape.k + column;
    return vec4(a[at], a[at + 1u], a[at + 2u], a[at + 3u]);
}

// Likewise: `mask_b` (cooperative_f16.wgsl) replaces rows past k with zeros, and columns past n
// only affect columns of C that are not stored.
fn load_b(row: u32, column: u32) -> vec4<f16> {
    let at = row * shape.n + column;
    return vec4(b[at], b[at + 1u], b[at + 2u], b[at + 3u]);
}

// Returns the elements, or zeros in columns past k.
fn mask_a(column: u32, value: vec4<f16>) -> vec4<f16> {
    let columns = column + vec4(0u, 1u, 2u, 3u);
    return select(vec4<f16>(), value, columns < vec4(shape.k));
}

