// Operands of any shape, read and written one element at a time.

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> shape: Shape;

fn load_a(row: u32, column: u32) -> vec4<f32> {
    var value = vec4<f32>();
    if row < shape.m {
        let at = row * shape.k + column;
        if column < shape.k { value.x = a[at]; }
        if column + 1u < shape.k { value.y = a[at + 1u]; }
        if column + 2u < shape.k { value.z = a[at + 2u]; }
        if column + 3u < shape.k { value.w = a[at + 3u]; }
    }
    return value;
}

fn load_b(row: u32, column: u32) -> vec4<f32> {
    var value = vec4<f32>();
    if row < shape.k {
        let at = row * shape.n + column;
        if column < shape.n { value.x = b[at]; }
        if column + 1u < shape.n { value.y = b[at + 1u]; }
        if column + 2u < shape.n { value.z = b[at + 2u]; }
        if column + 3u < shape.n { value.w = b[at + 3u]; }
    }
    return value;
}

fn store_c(row: u32, column: u32, value: vec4<f32>) {
    if row < shape.m {
        let at = row * shape.n + column;
        if column < shape.n { c[at] = value.x; }
        if column + 1u < shape.n { c[at + 1u] = value.y; }
        if column + 2u < shape.n { c[at + 2u] = value.z; }
        if column + 3u < shape.n { c[at + 3u] = value.w; }
    }
}

