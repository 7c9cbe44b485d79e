// Scans the chunks of rows, each by THREADS invocations: tile by tile, of which each invocation has
// four vectors, THREADS apart. Preceded by tiles.wgsl, where LOADS is 4, and by
//
//     const THREADS: u32, a power of two, at most 256;
//     fn sum_before(row: u32, chunk: u32, local_index: u32) -> Computed, of the chunks before one.

const ROWS_PER_WORKGROUP: u32 = 256u / THREADS;
// Vectors of a tile.
const TILE: u32 = LOADS * THREADS;

// Two halves, which are written alternately.
var<workgroup> exchange: array<vec4<Computed>, 512>;

@compute @workgroup_size(256)
fn scan_chunks(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let thread = local_index % THREADS;
    let row_index = group.y * ROWS_PER_WORKGROUP + local_index / THREADS;
    // Invocations beyond the last row load it too.
    let row = min(row_index, parameters.rows - 1u);
    var carry = sum_before(row, group.x, local_index);
    let first_tile = group.x * parameters.chunk_tiles;
    let last_tile = min(first_tile + parameters.chunk_tiles, parameters.tiles);
    var half = 0u;
    for (var tile = first_tile; tile < last_tile; tile++) {
        let first = tile * TILE;
        let whole = is_whole(first, TILE);
        var values = load_tile(row, first + thread, THREADS, whole);
        var sums_to: vec4<Computed>;
        for (var nth = 0u; nth < LOADS; nth++) {
            let value = values[nth];
            let two = value.x + value.y;
            let three = two + value.z;
            sums_to[nth] = three + value.w;
            values[nth] = vec4<Computed>(value.x, two, three, three + value.w);
        }
        // The inclusive scan of the sums of vectors, for each of the four alone.
        exchange[half + local_index] = sums_to;
        workgroupBarrier();
        for (var distance = 1u; distance < THREADS; distance <<= 1u) {
            if thread >= distance {
                sums_to = exchange[half + local_index - distance] + sums_to;
            }
            half = 256u - half;
            exchange[half + local_index] = sums_to;
            workgroupBarrier();
        }
        let totals = exchange[half + local_index - thread + THREADS - 1u];
        var before = vec4<Computed>();
        if thread > 0u {
            before = exchange[half + local_index - 1u];
        }
        half = 256u - half;
        let two = totals.x + totals.y;
        let three = two + totals.z;
        before += carry + vec4<Computed>(Computed(0), totals.x, two, three);
        carry += three + totals.w;
        let at = first + thread;
        if whole && row == row_index {
            for (var nth = 0u; nth < LOADS; nth++) {
                let sums = prefix_sums(before[nth], values[nth]);
                store_whole(row, at + nth * THREADS, sums);
            }
        } else if row == row_index {
            for (var nth = 0u; nth < LOADS; nth++) {
                store(row, at + nth * THREADS, prefix_sums(before[nth], values[nth]));
            }
        }
    }
}
