// Scans the rows of a matrix, a chunk of a row by each invocation. Preceded by the elements'
// definitions, by chunks.wgsl, and by
//
//     const EXCLUSIVE: bool; const HAS_CHUNKS: bool, whether rows have several.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

@compute @workgroup_size(64)
fn scan_plain(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= shape.rows * shape.chunks {
        return;
    }
    var sum = Computed(0);
    if HAS_CHUNKS {
        sum = sum_before(id.x);
    }
    let end = chunk_end(id.x);
    for (var at = chunk_start(id.x); at < end; at++) {
        let value = widen(x[at]);
        if EXCLUSIVE {
            y[at] = narrow(sum);
        }
        sum += value;
        if !EXCLUSIVE {
            y[at] = narrow(sum);
        }
    }
}
