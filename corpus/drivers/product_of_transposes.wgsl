// The product of two transposed matrices that are not square. Mesa 22.3.6 does not compile it
// ("vkCreateComputePipelines failed"), though its SPIR-V is valid: it computes the transpose of the
// product in the other order instead, and gives that the wrong number of columns.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4u>;

@compute @workgroup_size(4)
fn product_of_transposes(@builtin(global_invocation_id) id: vec3u) {
    let a = vec3f(vec3u(words[id.x] % 8u, id.x, 1u));
    let b = vec2f(vec2u(words[id.x] % 4u, 2u));
    let product = transpose(mat3x3f(a, 2.0 * a, vec3f(1.0))) * transpose(mat3x2f(b, b.yx, 3.0 * b));
    results[id.x] = vec4u(vec3u(product[0]), u32(product[1].y));
}
