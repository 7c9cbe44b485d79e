// Reductions over the invocations of a row, through workgroup memory: in two steps, each of which
// combines up to 16 numbers.

var<workgroup> exchange: array<f32, 256>;

const FIRST_STEP: u32 = max(THREADS / 16u, 1u);

fn row_largest(position: u32, value: f32) -> f32 {
    exchange[position] = value;
    workgroupBarrier();
    let row = position / THREADS * THREADS;
    let thread = position % THREADS;
    var largest = value;
    if thread < THREADS / FIRST_STEP {
        for (var nth = 1u; nth < FIRST_STEP; nth++) {
            largest = max(largest, exchange[row + nth * (THREADS / FIRST_STEP) + thread]);
        }
    }
    workgroupBarrier();
    exchange[position] = largest;
    workgroupBarrier();
    largest = exchange[row];
    for (var nth = 1u; nth < THREADS / FIRST_STEP; nth++) {
        largest = max(largest, exchange[row + nth]);
    }
    workgroupBarrier();
    return largest;
}

fn row_sum(position: u32, value: f32) -> f32 {
    exchange[position] = value;
    workgroupBarrier();
    let row = position / THREADS * THREADS;
    let thread = position % THREADS;
    var sum = value;
    if thread < THREADS / FIRST_STEP {
        for (var nth = 1u; nth < FIRST_STEP; nth++) {
            sum += exchange[row + nth * (THREADS / FIRST_STEP) + thread];
        }
    }
    workgroupBarrier();
    exchange[position] = sum;
    workgroupBarrier();
    sum = exchange[row];
    for (var nth = 1u; nth < THREADS / FIRST_STEP; nth++) {
        sum += exchange[row + nth];
    }
    workgroupBarrier();
    return sum;
}

