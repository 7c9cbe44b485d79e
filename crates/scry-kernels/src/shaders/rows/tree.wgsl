// Reductions over the invocations of a row, through workgroup memory: in two steps, each of which
// combines up to 16 numbers.

var<workgroup> exchange: array<f32, 256>;

const FIRST_STEP: u32 = max(THREADS / 16u, 1u);

fn reduce_row(position: u32, value: f32, is_sum: bool) -> f32 {
    exchange[position] = value;
    workgroupBarrier();
    let row = position / THREADS * THREADS;
    let thread = position % THREADS;
    var result = value;
    if thread < THREADS / FIRST_STEP {
        for (var nth = 1u; nth < FIRST_STEP; nth++) {
            let other = exchange[row + nth * (THREADS / FIRST_STEP) + thread];
            result = combine(result, other, is_sum);
        }
    }
    workgroupBarrier();
    exchange[position] = result;
    workgroupBarrier();
    result = exchange[row];
    for (var nth = 1u; nth < THREADS / FIRST_STEP; nth++) {
        result = combine(result, exchange[row + nth], is_sum);
    }
    workgroupBarrier();
    return result;
}

