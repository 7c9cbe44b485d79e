// Pointers to function and private variables, passed on from function to function.

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<private> state: array<u32, 4>;

fn rotate(value: ptr<function, u32>, by: u32) {
    *value = (*value << by) | (*value >> (32u - by));
}

fn mix(words: ptr<private, array<u32, 4>>, at: u32) -> u32 {
    var word = (*words)[at];
    rotate(&word, 13u);
    (*words)[at] = word * 5u + 0xe6546b64u;
    return (*words)[(at + 1u) % 4u];
}

@compute @workgroup_size(64)
fn pointers(@builtin(global_invocation_id) id: vec3u) {
    for (var i = 0u; i < 4u; i++) {
        state[i] = data[id.x] + i;
    }
    var total = 0u;
    for (var round = 0u; round < 8u; round++) {
        total ^= mix(&state, round % 4u);
    }
    data[id.x] = total;
}
