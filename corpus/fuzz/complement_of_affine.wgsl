// Complement and negation of values that are affine in the invocation.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4u>;

@compute @workgroup_size(4)
fn complement_of_affine(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    results[i] = vec4u(~i, ~(3u * i + 1u), bitcast<u32>(-bitcast<i32>(i)), words[~i % 4u]);
}
