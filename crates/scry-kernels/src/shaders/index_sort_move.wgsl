// Moves the pairs to their positions in the order of the digit: those of one digit keep their order.
// Preceded by index_sort_pass.wgsl.

@group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
// The position of the first pair of each digit and tile.
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read_write> sorted: array<vec2<u32>>;

// Pairs of each digit that precede those of an invocation in the tile. Two digits share a word:
// digit d is in the lower or, if it is odd, the upper half of [d / 2 * 256 + invocation].
var<workgroup> ranks: array<u32, 2048>;
// Sums of the ranks of 8 invocations.
var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn move_pairs(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first = group.x * TILE + local_index * ITEMS;
    for (var item = 0u; item < ITEMS; item++) {
        if first + item < sort.count {
            let digit = digit_of(pairs[first + item].x);
            ranks[digit / 2u * 256u + local_index] += 1u << (digit % 2u * 16u);
        }
    }
    workgroupBarrier();

    // Each invocation sums the counts of 8 invocations, for two digits.
    var sum = 0u;
    for (var nth = 0u; nth < 8u; nth++) {
        let count = ranks[local_index * 8u + nth];
        ranks[local_index * 8u + nth] = sum;
        sum += count;
    }
    sums[local_index] = sum;
    workgroupBarrier();
    let position = local_index % 32u;
    var before = sum;
    for (var distance = 1u; distance < 32u; distance *= 2u) {
        var other = 0u;
        if position >= distance {
            other = sums[local_index - distance];
        }
        workgroupBarrier();
        before += other;
        sums[local_index] = before;
        workgroupBarrier();
    }
    for (var nth = 0u; nth < 8u; nth++) {
        ranks[local_index * 8u + nth] += before - sum;
    }
    workgroupBarrier();

    for (var item = 0u; item < ITEMS; item++) {
        if first + item < sort.count {
            let pair = pairs[first + item];
            let digit = digit_of(pair.x);
            let at = digit / 2u * 256u + local_index;
            let rank = (ranks[at] >> (digit % 2u * 16u)) & 0xffffu;
            ranks[at] += 1u << (digit % 2u * 16u);
            sorted[offsets[digit * sort.tiles + group.x] + rank] = pair;
        }
    }
}
