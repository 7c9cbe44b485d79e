// Attention with an online softmax, a query by each invocation. Preceded by the elements' definitions,
// by `bias`, and by
//
//     const HEAD_DIM and CAUSAL.

struct Operand {
    batch: u32,
    head: u32,
    row: u32,
}

struct Sizes {
    q: Operand,
    k: Operand,
    v: Operand,
    out: Operand,
    bias: Operand,
    bias_column: u32,
    heads: u32,
    // Heads of queries for each head of keys and values.
    group_size: u32,
    queries: u32,
    keys: u32,
    scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<Stored>;
@group(0) @binding(1) var<storage, read> k: array<Stored>;
@group(0) @binding(2) var<storage, read> v: array<Stored>;
@group(0) @binding(3) var<storage, read_write> out: array<Stored>;
@group(0) @binding(4) var<storage, read> sizes: Sizes;

// The lowest f32: -infinity - -infinity would be NaN.
const LOWEST: f32 = -0x1.fffffep+127;

fn start_of(operand: Operand, batch: u32, head: u32) -> u32 {
    return batch * operand.batch + head * operand.head;
}

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
