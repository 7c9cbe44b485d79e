// Rotary position embedding: rotates pairs of elements of each head. Preceded by rope_quads.wgsl or
// rope_pairs.wgsl.

// Heads that an invocation rotates by the same angles.
const HEADS: u32 = 4u;

@compute @workgroup_size(256)
fn rope(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let blocks = shape.half / PAIRS;
    let head_blocks = (shape.heads + HEADS - 1u) / HEADS;
    let nth = group.x * 256u + local_index;
    let pair = nth % blocks * PAIRS;
    let first_head = nth / blocks % head_blocks * HEADS;
    let row = nth / blocks / head_blocks;
    if row >= shape.rows {
        return;
    }
    let turn = rotation(positions[row], pair);
    for (var nth_head = 0u; nth_head < HEADS; nth_head++) {
        let head = first_head + nth_head;
        if head < shape.heads {
            let at = row * shape.heads + head;
            let values = load(at, pair);
            let first = values.first * turn.first - values.second * turn.second;
            let second = values.second * turn.first + values.first * turn.second;
            store(at, pair, Pairs(first, second));
        }
    }
}
