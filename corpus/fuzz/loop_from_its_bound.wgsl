// Loops whose counter starts at the bound or one above it: they end when it wraps around, or after 200 iterations.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<vec4<u32>>;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let bound = words[id.x];
    var private_array = array<u32, 4>();

    var x = bound;
    var at_least = 0u;
    while x >= bound {
        if at_least == 200u { break; }
        private_array[x & 3u] += 1u;
        at_least += 1u;
        x += 1u;
    }

    x = bound;
    var at_most = 0u;
    while x <= bound {
        if at_most == 200u { break; }
        private_array[x & 3u] += 1u;
        at_most += 1u;
        x -= 1u;
    }

    x = bound + 1u;
    var above = 0u;
    while x > bound {
        if above == 200u { break; }
        private_array[x & 3u] += 1u;
        above += 1u;
        x += 1u;
    }

    var sum = 0u;
    for (var i = 0u; i < 4u; i++) {
        sum += private_array[i];
    }
    results[id.x] = vec4<u32>(at_least, at_most, above, sum);
}
