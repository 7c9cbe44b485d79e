// Adds the sums of splits, each result by THREADS invocations. Preceded by the elements' definitions,
// and by
//
//     const THREADS: u32, a power of two up to 256.

struct Shape {
    len: u32,
    splits: u32,
    // The stride of the results of a product of the batch.
    y_stride: u32,
}

// By product of the batch, then by split, then by result.
@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<Stored>;

var<immediate> shape: Shape;

// Results of a workgroup.
const RESULTS: u32 = 256u / THREADS;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(256)
fn add_splits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let result = group.x * RESULTS + local_index % RESULTS;
    let thread = local_index / RESULTS;
    var sum = 0.0;
    if result < shape.len {
        for (var split = thread; split < shape.splits; split += THREADS) {
            sum += partial[(group.z * shape.splits + split) * shape.len + result];
        }
    }
    sums[local_index] = sum;
    workgroupBarrier();
    for (var distance = THREADS / 2u; distance > 0u; distance /= 2u) {
        if thread < distance {
            sum += sums[local_index + distance * RESULTS];
            sums[local_index] = sum;
        }
        workgroupBarrier();
    }
    if thread == 0u && result < shape.len {
        y[group.z * shape.y_stride + result] = narrow(sum);
    }
}
