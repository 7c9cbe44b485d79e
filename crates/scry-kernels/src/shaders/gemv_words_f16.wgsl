// Eight elements of type f16 in 16 bytes.

alias Chunk = vec4<u32>;

fn add_pair(sum: f32, a: u32, x: u32) -> f32 {
    let p = unpack2x16float(a);
    let q = unpack2x16float(x);
    return fma(p.y, q.y, fma(p.x, q.x, sum));
}

// Adds the products of the elements of two chunks.
fn add_products(sum: f32, a: Chunk, x: Chunk) -> f32 {
    return add_pair(add_pair(add_pair(add_pair(sum, a.x, x.x), a.y, x.y), a.z, x.z), a.w, x.w);
}

