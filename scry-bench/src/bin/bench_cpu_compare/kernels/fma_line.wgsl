// Iterates x ← a·x + b 32 times for each element, without a loop.

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
var<immediate> factors: vec2f;

fn four(x: f32) -> f32 {
    let first = fma(x, factors.x, factors.y);
    let second = fma(first, factors.x, factors.y);
    let third = fma(second, factors.x, factors.y);
    return fma(third, factors.x, factors.y);
}

@compute @workgroup_size(256)
fn chain(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i >= arrayLength(&input) {
        return;
    }
    output[i] = four(four(four(four(four(four(four(four(input[i]))))))));
}
