// Sums the chunks of rows, one per workgroup. Preceded by tiles.wgsl,
// where LOADS is 4.

@group(0) @binding(4) var<storage, read_write> sums: array<Computed>;

// Vectors of a tile.
const TILE: u32 = 1024u;

var<workgroup> exchange: array<Computed, 256>;

@compute @workgroup_size(256)
fn sum_chunks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let chunk = group.x;
    let row = group.y;
    let first_tile = chunk * parameters.chunk_tiles;
    let last_tile = min(first_tile + parameters.chunk_tiles, parameters.tiles);
    var sum = Computed(0);
    for (var tile = first_tile; tile < last_tile; tile++) {
        let first = tile * TILE;
        let values = load_tile(row, first + local_index, 256u, is_whole(first, TILE));
        let vector = (values[0] + values[1]) + (values[2] + values[3]);
        sum += (vector.x + vector.y) + (vector.z + vector.w);
    }
    exchange[local_index] = sum;
    workgroupBarrier();
    for (var distance = 128u; distance > 0u; distance >>= 1u) {
        if local_index < distance {
            exchange[local_index] += exchange[local_index + distance];
        }
        workgroupBarrier();
    }
    if local_index == 0u {
        sums[row * parameters.chunks + chunk] = exchange[0];
    }
}
