// Counts the digits of each tile. Preceded by index_sort_pass.wgsl.

@group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
// By digit, then by tile.
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;

var<workgroup> tile_counts: array<atomic<u32>, 16>;

@compute @workgroup_size(256)
fn count_digits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var item = 0u; item < ITEMS; item++) {
        let nth = group.x * TILE + item * 256u + local_index;
        if nth < sort.count {
            atomicAdd(&tile_counts[digit_of(pairs[nth].x)], 1u);
        }
    }
    workgroupBarrier();
    if local_index < 16u {
        counts[local_index * sort.tiles + group.x] = atomicLoad(&tile_counts[local_index]);
    }
}
