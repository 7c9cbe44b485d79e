// 64-bit integers: a multiplicative hash, and division by what may be zero.

@group(0) @binding(0) var<storage, read_write> values: array<u64>;
@group(0) @binding(1) var<storage, read_write> signed: array<i64>;

@compute @workgroup_size(64)
fn int64(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x;
    var h = values[i];
    h = (h ^ (h >> 33u)) * 0xff51afd7ed558ccdlu;
    h ^= h >> 29u;
    values[i] = h;
    signed[i] = signed[i] / (i64(i) - 3li) % (i64(i) - 5li);
}
