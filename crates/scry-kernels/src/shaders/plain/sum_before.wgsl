// The sums of chunks before one of the same row. Preceded by chunks.wgsl, and by
//
//     alias Sum, their type.

@group(0) @binding(2) var<storage, read> sums: array<Sum>;

fn sum_before(chunk: u32) -> Sum {
    var sum = Sum(0);
    for (var other = chunk / shape.chunks * shape.chunks; other < chunk; other++) {
        sum += sums[other];
    }
    return sum;
}
