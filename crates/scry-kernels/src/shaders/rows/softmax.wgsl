// The softmax of each row, or its logarithm if LOGARITHM. Preceded by rows.wgsl and the reductions.

@group(0) @binding(0) var<storage, read> x: array<StoredChunk>;
@group(0) @binding(1) var<storage, read_write> y: array<StoredChunk>;

// The lowest f32, at least which every maximum is: -infinity - -infinity would be NaN.
const LOWEST: f32 = -3.40282347e38;

// Returns what the results of a row are computed with: the sum of exponentials, or its logarithm.
fn finish(sum: f32) -> f32 {
    if LOGARITHM {
        return log(sum);
    }
    return sum;
}

fn result(value: Chunk, largest: f32, sum: f32) -> StoredChunk {
    if LOGARITHM {
        return narrow_chunk(value - largest - sum);
    }
    return narrow_chunk(exp(value - largest) / sum);
}

fn softmax_row(group: u32, position: u32) {
    let part = part_of(group, position);
    if CACHED {
        var values: array<Chunk, VALUES>;
        var thread_largest = LOWEST;
        for (var nth = 0u; nth < VALUES; nth++) {
            let at = nth * THREADS + part.thread;
            values[nth] = Chunk(LOWEST);
            if at < part.chunks {
                values[nth] = widen_chunk(x[part.start + at]);
            }
            thread_largest = max(thread_largest, largest_of(values[nth]));
        }
        let largest = row_largest(position, thread_largest);
        var thread_sum = 0.0;
        for (var nth = 0u; nth < VALUES; nth++) {
            if nth * THREADS + part.thread < part.chunks {
                thread_sum += sum_of(exp(values[nth] - largest));
            }
        }
        let sum = finish(row_sum(position, thread_sum));
        for (var nth = 0u; nth < VALUES; nth++) {
            let at = nth * THREADS + part.thread;
            if at < part.chunks {
                y[part.start + at] = result(values[nth], largest, sum);
            }
        }
        return;
    }
    // A maximum, and the sum of exponentials relative to it.
    var thread_largest = LOWEST;
    var thread_sum = 0.0;
    for (var at = part.thread; at < part.chunks; at += THREADS) {
        let chunk = widen_chunk(x[part.start + at]);
        let larger = max(thread_largest, largest_of(chunk));
        thread_sum = thread_sum * exp(thread_largest - larger) + sum_of(exp(chunk - larger));
        thread_largest = larger;
    }
    let largest = row_largest(position, thread_largest);
    let sum = finish(row_sum(position, thread_sum * exp(thread_largest - largest)));
    for (var at = part.thread; at < part.chunks; at += THREADS) {
        y[part.start + at] = result(widen_chunk(x[part.start + at]), largest, sum);
    }
}

