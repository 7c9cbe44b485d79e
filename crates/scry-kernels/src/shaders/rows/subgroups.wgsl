// Reductions over the invocations of a row, by subgroups. Preceded by
//
//     const SUBGROUP: u32, the size of subgroups.

var<workgroup> exchange: array<f32, WORKGROUP / SUBGROUP>;

fn row_largest(position: u32, value: f32) -> f32 {
    var largest = value;
    for (var distance = 1u; distance < min(THREADS, SUBGROUP); distance *= 2u) {
        largest = max(largest, subgroupShuffleXor(largest, distance));
    }
    if THREADS <= SUBGROUP {
        return largest;
    }
    exchange[position / SUBGROUP] = largest;
    workgroupBarrier();
    let first = position / THREADS * (THREADS / SUBGROUP);
    for (var nth = 0u; nth < THREADS / SUBGROUP; nth++) {
        largest = max(largest, exchange[first + nth]);
    }
    workgroupBarrier();
    return largest;
}

fn row_sum(position: u32, value: f32) -> f32 {
    var sum = value;
    for (var distance = 1u; distance < min(THREADS, SUBGROUP); distance *= 2u) {
        sum += subgroupShuffleXor(sum, distance);
    }
    if THREADS <= SUBGROUP {
        return sum;
    }
    exchange[position / SUBGROUP] = sum;
    workgroupBarrier();
    let first = position / THREADS * (THREADS / SUBGROUP);
    sum = exchange[first];
    for (var nth = 1u; nth < THREADS / SUBGROUP; nth++) {
        sum += exchange[first + nth];
    }
    workgroupBarrier();
    return sum;
}

