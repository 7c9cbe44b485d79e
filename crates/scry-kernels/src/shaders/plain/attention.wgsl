// Attention with an online softmax, a query by each invocation. Preceded by the elements' definitions,
// by `bias`, by attention_operands.wgsl, and by
//
//     const HEAD_DIM and CAUSAL.

@compute @workgroup_size(64)
fn attention_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    let query = id.x;
    let head = id.y;
    let batch = id.z;
    if query >= sizes.queries {
        return;
    }
    let kv_head = head / sizes.group_size;
    let q_start = start_of(sizes.q, batch, head) + query * sizes.q.row;
    let k_start = start_of(sizes.k, batch, kv_head);
    let v_start = start_of(sizes.v, batch, kv_head);
    var sums: array<f32, HEAD_DIM>;
    var largest = LOWEST;
    var weights = 0.0;
    let keys = select(sizes.keys, min(sizes.keys, query + 1u), CAUSAL);
    for (var key = 0u; key < keys; key++) {
        let k_row = k_start + key * sizes.k.row;
        var product = 0.0;
        for (var column = 0u; column < HEAD_DIM; column++) {
            product += widen(q[q_start + column]) * widen(k[k_row + column]);
        }
        let score = product * sizes.scale + bias(vec4<u32>(batch, head, query, key));
        let next = max(largest, score);
        let correction = exp(largest - next);
        let weight = exp(score - next);
        largest = next;
        weights = weights * correction + weight;
        let v_row = v_start + key * sizes.v.row;
        for (var column = 0u; column < HEAD_DIM; column++) {
            sums[column] = sums[column] * correction + weight * widen(v[v_row + column]);
        }
    }
    // A row that sees no key becomes 0.
    let scale = select(1.0 / weights, 0.0, weights == 0.0);
    let start = start_of(sizes.out, batch, head) + query * sizes.out.row;
    for (var column = 0u; column < HEAD_DIM; column++) {
        out[start + column] = narrow(sums[column] * scale);
    }
}
