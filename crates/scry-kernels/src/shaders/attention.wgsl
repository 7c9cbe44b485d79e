// Attention with an online softmax: a workgroup computes QUERIES rows of one head, and reads keys
// and values in blocks of KEYS rows. Preceded by the elements' definitions, by `bias`,
// by attention_operands.wgsl, and by
//
//     const HEAD_DIM, its power of two DIM, CAUSAL; QUERIES = 1024 / DIM; and KEYS.
//
// A quarter of a row's DIM invocations compute four columns of its result each.

const THREADS: u32 = 256u;
// Invocations of a row.
const ROW_THREADS: u32 = DIM / 4u;
// Elements from a row of a block to the next: odd, against bank conflicts.
const PITCH: u32 = DIM + 1u;

var<workgroup> q_rows: array<f32, QUERIES * DIM>;
// A block of keys, then of values.
var<workgroup> block: array<f32, KEYS * PITCH>;
// Scores, then weights.
var<workgroup> scores: array<f32, QUERIES * KEYS>;

@compute @workgroup_size(256)
fn attention(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first_query = group.x * QUERIES;
    let head = group.y;
    let batch = group.z;
    let kv_head = head / sizes.group_size;
    let q_start = start_of(sizes.q, batch, head);
    for (var at = local_index; at < QUERIES * DIM; at += THREADS) {
        let query = first_query + at / DIM;
        let column = at % DIM;
        var value = 0.0;
        if query < sizes.queries && column < HEAD_DIM {
            value = widen(q[q_start + query * sizes.q.row + column]);
        }
        q_rows[at] = value;
    }
    let row = local_index / ROW_THREADS;
    let thread = local_index % ROW_THREADS;
    let column = thread * 4u;
    let query = first_query + row;
    let row_scores = row * KEYS;
    var sums = vec4<f32>();
    var largest = LOWEST;
    var weights = 0.0;
    var keys = sizes.keys;
    if CAUSAL {
        keys = min(keys, first_query + QUERIES);
    }
    for (var first_key = 0u; first_key < keys; first_key += KEYS) {
        load_block(local_index, first_key, start_of(sizes.k, batch, kv_head), sizes.k.row, true);
        workgroupBarrier();
        for (var key = thread; key < KEYS; key += ROW_THREADS) {
            let position = vec4<u32>(batch, head, query, first_key + key);
            scores[row_scores + key] = score(position, row * DIM, key * PITCH);
        }
        workgroupBarrier();
        var block_largest = largest;
        for (var key = 0u; key < KEYS; key++) {
            block_largest = max(block_largest, scores[row_scores + key]);
        }
        let correction = exp(largest - block_largest);
        largest = block_largest;
        load_block(local_index, first_key, start_of(sizes.v, batch, kv_head), sizes.v.row, false);
        workgroupBarrier();
        for (var key = thread; key < KEYS; key += ROW_THREADS) {
            scores[row_scores + key] = exp(scores[row_scores + key] - largest);
        }
        workgroupBarrier();
        sums *= correction;
        weights *= correction;
        for (var key = 0u; key < KEYS; key++) {
            let weight = scores[row_scores + key];
            weights += weight;
            let at = key * PITCH + column;
            sums += weight * vec4<f32>(block[at], block[at + 1u], block[at + 2u], block[at + 3u]);
        }
        workgroupBarrier();
    }
    if query >= sizes.queries {
        return;
    }
    // A row that sees no key becomes 0.
    let scale = select(1.0 / weights, 0.0, weights == 0.0);
    let start = start_of(sizes.out, batch, head) + query * sizes.out.row;
    for (var nth = 0u; nth < 4u; nth++) {
        if column + nth < HEAD_DIM {
            out[start + column + nth] = narrow(sums[nth] * scale);
        }
    }
}

// Loads a block of rows of keys or values, padded with zeros.
fn load_block(local_index: u32, first_key: u32, start: u32, row_stride: u32, is_keys: bool) {
    for (var at = local_index; at < KEYS * DIM; at += THREADS) {
        let key = first_key + at / DIM;
        let column = at % DIM;
        var value = 0.0;
        if key < sizes.keys && column < HEAD_DIM {
            let position = start + key * row_stride + column;
            if is_keys {
                value = widen(k[position]);
            } else {
                value = widen(v[position]);
            }
        }
        block[at / DIM * PITCH + column] = value;
    }
}

// Returns the score of a query and a key, -infinity for keys that the query does not see. `position`
// is their batch, head, query and key; `q_at` and `k_at` are where their rows begin.
fn score(position: vec4<u32>, q_at: u32, k_at: u32) -> f32 {
    let query = position.z;
    let key = position.w;
    if key >= sizes.keys || query >= sizes.queries || (CAUSAL && key > query) {
        // WGSL rejects constants that are infinite.
        return bitcast<f32>(0xff800000u | (sizes.keys & 0u));
    }
    var product = 0.0;
    for (var column = 0u; column < DIM; column++) {
        product += q_rows[q_at + column] * block[k_at + column];
    }
    return product * sizes.scale + bias(position);
}
