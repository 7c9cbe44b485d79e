// Loads precede later stores to a component, at constant and dynamic indices.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4f>;
var<private> zeros: mat4x3f;
var<private> fives: array<vec4f, 4> = array<vec4f, 4>(vec4f(5.0), vec4f(6.0), vec4f(7.0), vec4f(8.0));

@compute @workgroup_size(4)
fn load_before_component_store(@builtin(local_invocation_index) i: u32) {
    var empty: array<vec2f, 4>;
    var twos = mat2x2f(2.0, 2.0, 2.0, 2.0);
    results[i] = vec4f(zeros[i].z, fives[i].w, empty[i].y, twos[words[i] % 2u].y);
    zeros[0][2] = 1.0;
    fives[1].w = 1.0;
    empty[2].y = 1.0;
    twos[1].y = 1.0;
}
