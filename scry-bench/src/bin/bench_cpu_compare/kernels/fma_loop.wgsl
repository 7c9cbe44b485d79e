// Iterates x ← a·x + b 32 times for each element.

const STEPS = 32u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
var<immediate> factors: vec2f;

@compute @workgroup_size(256)
fn chain(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    if i >= arrayLength(&input) {
        return;
    }
    var x = input[i];
    for (var step = 0u; step < STEPS; step++) {
        x = fma(x, factors.x, factors.y);
    }
    output[i] = x;
}
