// Eight elements of type bf16 in 16 bytes.

alias Chunk = vec4<u32>;

fn add_pair(sum: f32, a: u32, x: u32) -> f32 {
    let upper = fma(bitcast<f32>(a & 0xffff0000u), bitcast<f32>(x & 0xffff0000u), sum);
    return fma(bitcast<f32>(a << 16u), bitcast<f32>(x << 16u), upper);
}

// Adds the products of the elements of two chunks.
fn add_products(sum: f32, a: Chunk, x: Chunk) -> f32 {
    return add_pair(add_pair(add_pair(add_pair(sum, a.x, x.x), a.y, x.y), a.z, x.z), a.w, x.w);
}

