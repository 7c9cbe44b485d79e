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

fn load_a(row: u32, column: u32) -> vec4<f16> {
    if row < shape.m && column < shape.k {
        return a[row * (shape.k / 4u) + column / 4u];
    }
    return vec4<f16>();
}

fn load_b(row: u32, column: u32) -> vec4<f16> {
    if row < shape.k && column < shape.n {
        return b[row * (shape.n / 4u) + column / 4u];
    }
    return vec4<f16>();
}

