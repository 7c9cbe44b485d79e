// Copies the elements of chunks whose flags are set, one chunk per workgroup: tile by tile, of which
// each invocation has four vectors of flags, 256 apart. Preceded by the elements' definitions, by
// parameters.wgsl of scans, by `load_flags`, and by
//
//     fn sum_before(row: u32, chunk: u32, local_index: u32) -> u32, of the chunks before one.

@group(0) @binding(0) var<storage, read> x: array<Stored>;
@group(0) @binding(2) var<storage, read_write> y: array<Stored>;
@group(0) @binding(3) var<storage, read_write> count: array<u32>;

// Vectors of a tile.
const TILE: u32 = 1024u;

// Two halves, which are written alternately.
var<workgroup> exchange: array<vec4<u32>, 512>;

// Copies the elements of a vector, the first one to `to`.
fn copy_vector(at: u32, to: u32, is_set: vec4<u32>) {
    let before = vec3<u32>(is_set.x, is_set.x + is_set.y, is_set.x + is_set.y + is_set.z);
    if is_set.x != 0u {
        y[to] = x[4u * at];
    }
    if is_set.y != 0u {
        y[to + before.x] = x[4u * at + 1u];
    }
    if is_set.z != 0u {
        y[to + before.y] = x[4u * at + 2u];
    }
    if is_set.w != 0u {
        y[to + before.z] = x[4u * at + 3u];
    }
}

@compute @workgroup_size(256)
fn compact_chunks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    var carry = sum_before(0u, group.x, local_index);
    let first_tile = group.x * parameters.chunk_tiles;
    let last_tile = min(first_tile + parameters.chunk_tiles, parameters.tiles);
    var half = 0u;
    for (var tile = first_tile; tile < last_tile; tile++) {
        let first = tile * TILE + local_index;
        var is_set: array<vec4<u32>, 4>;
        for (var nth = 0u; nth < 4u; nth++) {
            is_set[nth] = load_flags(first + nth * 256u);
        }
        var counts: vec4<u32>;
        for (var nth = 0u; nth < 4u; nth++) {
            counts[nth] = is_set[nth].x + is_set[nth].y + is_set[nth].z + is_set[nth].w;
        }
        // The inclusive scan of the counts of vectors, for each of the four alone.
        var counts_to = counts;
        exchange[half + local_index] = counts_to;
        workgroupBarrier();
        for (var distance = 1u; distance < 256u; distance <<= 1u) {
            if local_index >= distance {
                counts_to += exchange[half + local_index - distance];
            }
            half = 256u - half;
            exchange[half + local_index] = counts_to;
            workgroupBarrier();
        }
        let totals = exchange[half + 255u];
        half = 256u - half;
        let before = counts_to - counts
            + vec4<u32>(0u, totals.x, totals.x + totals.y, totals.x + totals.y + totals.z);
        for (var nth = 0u; nth < 4u; nth++) {
            copy_vector(first + nth * 256u, carry + before[nth], is_set[nth]);
        }
        carry += totals.x + totals.y + totals.z + totals.w;
    }
    if local_index == 0u && group.x == parameters.chunks - 1u {
        count[0] = carry;
    }
}
