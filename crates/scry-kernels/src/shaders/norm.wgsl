// Layer norm or, unless CENTERED, RMS norm of each row. Preceded by rows.wgsl, and by the bindings:
// `x`, `y`, and the functions `weight` and `bias` of a column.

fn merge(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return a + b;
}

// Sums a number over the invocations of a row.
fn row_sum(local_index: u32, thread: u32, value: f32) -> f32 {
    return reduce_row(local_index, thread, vec2<f32>(value, 0.0)).x;
}

fn squared_distance(value: f32, mean: f32) -> f32 {
    let distance = value - mean;
    return distance * distance;
}

fn result(value: f32, mean: f32, scale: f32, column: u32) -> Stored {
    return narrow((value - mean) * scale * weight(column) + bias(column));
}

@compute @workgroup_size(256)
fn norm(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let thread = local_index % THREADS;
    let row = group.x * ROWS_PER_WORKGROUP + local_index / THREADS;
    let columns = select(0u, matrix.columns, row < matrix.rows);
    let start = row * matrix.columns;
    let count = f32(matrix.columns);
    var mean = 0.0;
    if CACHED {
        var values: array<f32, VALUES>;
        var sum = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            let column = nth * THREADS + thread;
            if column < columns {
                values[nth] = widen(x[start + column]);
                sum += values[nth];
            }
        }
        if CENTERED {
            mean = row_sum(local_index, thread, sum) / count;
        }
        var squares = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            if nth * THREADS + thread < columns {
                squares += squared_distance(values[nth], mean);
            }
        }
        let variance = row_sum(local_index, thread, squares) / count;
        let scale = 1.0 / sqrt(variance + matrix.epsilon);
        for (var nth = 0u; nth < VALUES; nth++) {
            let column = nth * THREADS + thread;
            if column < columns {
                y[start + column] = result(values[nth], mean, scale, column);
            }
        }
        return;
    }
    if CENTERED {
        var sum = 0.0;
        for (var column = thread; column < columns; column += THREADS) {
            sum += widen(x[start + column]);
        }
        mean = row_sum(local_index, thread, sum) / count;
    }
    var squares = 0.0;
    for (var column = thread; column < columns; column += THREADS) {
        squares += squared_distance(widen(x[start + column]), mean);
    }
    let variance = row_sum(local_index, thread, squares) / count;
    let scale = 1.0 / sqrt(variance + matrix.epsilon);
    for (var column = thread; column < columns; column += THREADS) {
        y[start + column] = result(widen(x[start + column]), mean, scale, column);
    }
}
