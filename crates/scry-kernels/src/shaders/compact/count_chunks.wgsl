// Counts the flags of chunks that are set, one chunk per workgroup. Preceded by parameters.wgsl of
// scans, and by `load_flags`.

@group(0) @binding(4) var<storage, read_write> sums: array<u32>;

// Vectors of a tile.
const TILE: u32 = 1024u;

var<workgroup> exchange: array<u32, 256>;

@compute @workgroup_size(256)
fn count_chunks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first_tile = group.x * parameters.chunk_tiles;
    let last_tile = min(first_tile + parameters.chunk_tiles, parameters.tiles);
    var count = vec4<u32>();
    for (var tile = first_tile; tile < last_tile; tile++) {
        for (var nth = 0u; nth < 4u; nth++) {
            count += load_flags(tile * TILE + nth * 256u + local_index);
        }
    }
    exchange[local_index] = count.x + count.y + count.z + count.w;
    workgroupBarrier();
    for (var distance = 128u; distance > 0u; distance >>= 1u) {
        if local_index < distance {
            exchange[local_index] += exchange[local_index + distance];
        }
        workgroupBarrier();
    }
    if local_index == 0u {
        sums[group.x] = exchange[0];
    }
}
