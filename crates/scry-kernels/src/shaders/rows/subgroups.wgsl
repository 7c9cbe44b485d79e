// Reductions over the invocations of a row, by subgroups. Preceded by
//
//     const SUBGROUP: u32, the size of subgroups.

var<workgroup> exchange: array<f32, WORKGROUP / SUBGROUP>;

fn reduce_row(position: u32, value: f32, is_sum: bool) -> f32 {
    var result = value;
    for (var distance = 1u; distance < min(THREADS, SUBGROUP); distance *= 2u) {
        result = combine(result, subgroupShuffleXor(result, distance), is_sum);
    }
    if THREADS <= SUBGROUP {
        return result;
    }
    exchange[position / SUBGROUP] = result;
    workgroupBarrier();
    let first = position / THREADS * (THREADS / SUBGROUP);
    result = exchange[first];
    for (var nth = 1u; nth < THREADS / SUBGROUP; nth++) {
        result = combine(result, exchange[first + nth], is_sum);
    }
    workgroupBarrier();
    return result;
}

