// Scans a row by one workgroup, a chunk by each invocation. Preceded by the elements' definitions, by
// chunks.wgsl, and by
//
//     const EXCLUSIVE: bool.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

var<workgroup> sums: array<Computed, 256>;

@compute @workgroup_size(256)
fn scan_workgroup(@builtin(local_invocation_index) local_index: u32) {
    let start = chunk_start(min(local_index, shape.chunks - 1u));
    let end = select(start, chunk_end(local_index), local_index < shape.chunks);
    var sum = Computed(0);
    for (var at = start; at < end; at++) {
        sum += widen(x[at]);
    }
    sums[local_index] = sum;
    workgroupBarrier();
    sum = Computed(0);
    for (var other = 0u; other < local_index; other++) {
        sum += sums[other];
    }
    for (var at = start; at < end; at++) {
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
