// Four elements of type f32 in 16 bytes.

alias Chunk = vec4<u32>;

// Adds the products of the elements of two chunks.
fn add_products(sum: f32, a: Chunk, x: Chunk) -> f32 {
    let p = bitcast<vec4<f32>>(a);
    let q = bitcast<vec4<f32>>(x);
    return fma(p.w, q.w, fma(p.z, q.z, fma(p.y, q.y, fma(p.x, q.x, sum))));
}

