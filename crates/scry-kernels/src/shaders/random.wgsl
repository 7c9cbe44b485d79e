// Random numbers, four for each counter. Preceded by philox.wgsl, and by
//
//     fn store(block: u32, words: vec4<u32>), which converts the words of a counter, and stores them
//     if they are within `y`.

struct Shape {
    seed: vec2<u32>,
    // Elements of `y`.
    len: u32,
}

var<immediate> shape: Shape;

// Counters of an invocation.
const BLOCKS: u32 = 4u;

@compute @workgroup_size(256)
fn random(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < BLOCKS; nth++) {
        let block = (group.x * BLOCKS + nth) * 256u + local_index;
        if block <= (shape.len - 1u) / 4u {
            store(block, philox(block, shape.seed));
        }
    }
}
