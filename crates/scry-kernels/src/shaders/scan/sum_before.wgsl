// Rows of several chunks, whose sums are known. Preceded by parameters.wgsl, and by their type, `Sum`.

@group(0) @binding(4) var<storage, read> sums: array<Sum>;

var<workgroup> partial_sums: array<Sum, 256>;

// Returns the sum of the chunks before a chunk.
fn sum_before(row: u32, chunk: u32, local_index: u32) -> Sum {
    var sum = Sum(0);
    for (var other = local_index; other < chunk; other += 256u) {
        sum += sums[row * parameters.chunks + other];
    }
    partial_sums[local_index] = sum;
    workgroupBarrier();
    for (var distance = 128u; distance > 0u; distance >>= 1u) {
        if local_index < distance {
            partial_sums[local_index] += partial_sums[local_index + distance];
        }
        workgroupBarrier();
    }
    return partial_sums[0];
}

