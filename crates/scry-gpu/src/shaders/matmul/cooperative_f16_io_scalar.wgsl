enable f16;
enable wgpu_cooperative_matrix;

// Operands with rows of any length: four elements, each with its own test.

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f16>;
@group(0) @binding(1) var<storage, read> b: array<f16>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

fn element_a(row: u32, column: u32) -> f16 {
    if row < shape.m && column < shape.k {
        return a[row * shape.k + column];
    }
    return 0h;
}

fn element_b(row: u32, column: u32) -> f16 {
    if row < shape.k && column < shape.n {
        return b[row * shape.n + column];
    }
    return 0h;
}

fn load_a(row: u32, column: u32) -> vec4<f16> {
    return vec4(
        element_a(row, column), element_a(row, column + 1u),
        element_a(row, column + 2u), element_a(row, column + 3u),
    );
}

fn load_b(row: u32, column: u32) -> vec4<f16> {
    return vec4(
        element_b(row, column), element_b(row, column + 1u),
        element_b(row, column + 2u), element_b(row, column + 3u),
    );
}

