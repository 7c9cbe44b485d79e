// Layer norm or, unless CENTERED, RMS norm of each row. Preceded by rows.wgsl and the reductions, and
// by the bindings: `x`, `y`, and the functions `weight` and `bias` of the columns of a chunk.

fn squared_distance(chunk: Chunk, mean: f32) -> f32 {
    let distance = chunk - mean;
    return sum_of(distance * distance);
}

fn result(chunk: Chunk, mean: f32, scale: f32, at: u32) -> StoredChunk {
    return narrow_chunk((chunk - mean) * scale * weight(at) + bias(at));
}

fn norm_row(group: u32, position: u32) {
    let part = part_of(group, position);
    let count = f32(matrix.columns);
    var mean = 0.0;
    if CACHED {
        var values: array<Chunk, VALUES>;
        var thread_sum = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            let at = nth * THREADS + part.thread;
            if at < part.chunks {
                values[nth] = widen_chunk(x[part.start + at]);
                thread_sum += sum_of(values[nth]);
            }
        }
        if CENTERED {
            mean = row_sum(position, thread_sum) / count;
        }
        var thread_squares = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            if nth * THREADS + part.thread < part.chunks {
                thread_squares += squared_distance(values[nth], mean);
            }
        }
        let variance = row_sum(position, thread_squares) / count;
        let scale = 1.0 / sqrt(variance + matrix.epsilon);
        for (var nth = 0u; nth < VALUES; nth++) {
            let at = nth * THREADS + part.thread;
            if at < part.chunks {
                y[part.start + at] = result(values[nth], mean, scale, at);
            }
        }
        return;
    }
    if CENTERED {
        var thread_sum = 0.0;
        for (var at = part.thread; at < part.chunks; at += THREADS) {
            thread_sum += sum_of(widen_chunk(x[part.start + at]));
        }
        mean = row_sum(position, thread_sum) / count;
    }
    var thread_squares = 0.0;
    for (var at = part.thread; at < part.chunks; at += THREADS) {
        thread_squares += squared_distance(widen_chunk(x[part.start + at]), mean);
    }
    let variance = row_sum(position, thread_squares) / count;
    let scale = 1.0 / sqrt(variance + matrix.epsilon);
    for (var at = part.thread; at < part.chunks; at += THREADS) {
        y[part.start + at] = result(widen_chunk(x[part.start + at]), mean, scale, at);
    }
}

