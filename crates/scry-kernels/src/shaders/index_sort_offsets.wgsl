// Replaces the counts of digits by the positions of the first pairs of each digit and tile: an
// exclusive prefix sum, by one workgroup, of 2048 counts at a time. Preceded by index_sort_pass.wgsl.

@group(0) @binding(0) var<storage, read_write> counts: array<u32>;

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn digit_offsets(@builtin(local_invocation_index) local_index: u32) {
    let len = 16u * sort.tiles;
    var before = 0u;
    for (var start = 0u; start < len; start += TILE) {
        // Each invocation has neighbouring counts.
        let first = start + local_index * ITEMS;
        var values: array<u32, ITEMS>;
        var own = 0u;
        for (var item = 0u; item < ITEMS; item++) {
            values[item] = own;
            if first + item < len {
                own += counts[first + item];
            }
        }
        sums[local_index] = own;
        workgroupBarrier();
        for (var distance = 1u; distance < 256u; distance *= 2u) {
            var sum = sums[local_index];
            if local_index >= distance {
                sum += sums[local_index - distance];
            }
            workgroupBarrier();
            sums[local_index] = sum;
            workgroupBarrier();
        }
        let offset = before + sums[local_index] - own;
        for (var item = 0u; item < ITEMS; item++) {
            if first + item < len {
                counts[first + item] = offset + values[item];
            }
        }
        before += sums[255];
        workgroupBarrier();
    }
}
