// Counts the digits of the keys of each tile. Preceded by parameters.wgsl and `encode`.

@group(0) @binding(0) var<storage, read> keys: array<u32>;
// Of each digit, the counts of all tiles.
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

var<workgroup> tile_counts: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn count_digits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    atomicStore(&tile_counts[local_index], 0u);
    workgroupBarrier();
    for (var nth = 0u; nth < 8u; nth++) {
        let at = (group.x * 8u + nth) * 256u + local_index;
        if at < parameters.count {
            let digit = (encode(keys[at]) >> parameters.shift) & 255u;
            atomicAdd(&tile_counts[digit], 1u);
        }
    }
    workgroupBarrier();
    counts[local_index * parameters.tiles + group.x] = atomicLoad(&tile_counts[local_index]);
}
