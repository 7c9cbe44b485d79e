// The softmax of each row, or its logarithm if LOGARITHM. Preceded by rows.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

// The lowest f32, at least which every maximum is: -infinity - -infinity would be NaN.
const LOWEST: f32 = -3.40282347e38;

// A maximum, and the sum of exponentials relative to it.
fn merge(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let largest = max(a.x, b.x);
    return vec2<f32>(largest, a.y * exp(a.x - largest) + b.y * exp(b.x - largest));
}

fn finish(sum: f32) -> f32 {
    if LOGARITHM {
        return log(sum);
    }
    return sum;
}

// The result for one value; `sum` is the sum of exponentials, or its logarithm.
fn result(value: f32, largest: f32, sum: f32) -> Stored {
    if LOGARITHM {
        return narrow(value - largest - sum);
    }
    return narrow(exp(value - largest) / sum);
}

@compute @workgroup_size(256)
fn softmax(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let thread = local_index % THREADS;
    let row = group.x * ROWS_PER_WORKGROUP + local_index / THREADS;
    let columns = select(0u, matrix.columns, row < matrix.rows);
    let start = row * matrix.columns;
    if CACHED {
        var values: array<f32, VALUES>;
        var largest = LOWEST;
        for (var nth = 0u; nth < VALUES; nth++) {
            let column = nth * THREADS + thread;
            values[nth] = LOWEST;
            if column < columns {
                values[nth] = widen(x[start + column]);
            }
            largest = max(largest, values[nth]);
        }
        let row_largest = reduce_row(local_index, thread, vec2<f32>(largest, 0.0)).x;
        var sum = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            if nth * THREADS + thread < columns {
                sum += exp(values[nth] - row_largest);
            }
        }
        sum = finish(reduce_row(local_index, thread, vec2<f32>(row_largest, sum)).y);
        for (var nth = 0u; nth < VALUES; nth++) {
            let column = nth * THREADS + thread;
            if column < columns {
                y[start + column] = result(values[nth], row_largest, sum);
            }
        }
        return;
    }
    var state = vec2<f32>(LOWEST, 0.0);
    for (var column = thread; column < columns; column += THREADS) {
        state = merge(state, vec2<f32>(widen(x[start + column]), 1.0));
    }
    state = reduce_row(local_index, thread, state);
    let sum = finish(state.y);
    for (var column = thread; column < columns; column += THREADS) {
        y[start + column] = result(widen(x[start + column]), state.x, sum);
    }
}
