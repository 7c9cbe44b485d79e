// Scans rows in one pass, with decoupled look-back: a tile of a row per workgroup, which publishes its
// sum, and adds the sums before it up. Sums are of a tree with 32 branches: of tiles, of groups of
// 32 tiles, and of all tiles up to the end of each supergroup of 32 groups. The order of additions
// thus does not depend on the order in which workgroups run. Tiles are taken in order from a counter,
// so that every tile that a workgroup waits for has been taken by a workgroup that is running.
//
// Subgroups must have 32 invocations. Preceded by tiles.wgsl.

// The counter of tiles; then the states of tiles, of groups and of supergroups, each of all rows. A
// state is a sum in the lower half, and in the upper half 1 as soon as it is valid.
@group(0) @binding(4) var<storage, read_write> states: array<atomic<u64>>;

const SUBGROUPS: u32 = 8u;
// Vectors of a subgroup, and of a tile.
const PART: u32 = 32u * LOADS;
const TILE: u32 = SUBGROUPS * PART;

var<workgroup> taken: u32;
var<workgroup> part_sums: array<Computed, 8>;
var<workgroup> earlier_sums: array<Computed, 8>;

fn publish(at: u32, sum: Computed) {
    atomicStore(&states[at], (1lu << 32u) | u64(bitcast<u32>(sum)));
}

fn wait_for(at: u32) -> Computed {
    loop {
        let state = atomicLoad(&states[at]);
        if (state >> 32u) != 0lu {
            return bitcast<Computed>(u32(state & 0xfffffffflu));
        }
    }
    return Computed(0);
}

@compute @workgroup_size(256)
fn scan_tiles(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    if local_index == 0u {
        taken = u32(atomicAdd(&states[0], 1lu));
    }
    let ticket = workgroupUniformLoad(&taken);
    let row = ticket / parameters.tiles;
    let tile = ticket % parameters.tiles;
    let group = tile / 32u;
    let supergroup = group / 32u;
    // Where the states of the row start.
    let groups = (parameters.tiles + 31u) / 32u;
    let supergroups = (groups + 31u) / 32u;
    let tile_states = 1u + row * parameters.tiles;
    let group_states = 1u + parameters.rows * parameters.tiles + row * groups;
    let supergroup_states =
        1u + parameters.rows * (parameters.tiles + groups) + row * supergroups;

    let first = tile * TILE;
    let whole = is_whole(first, TILE);
    let start = first + subgroup * PART + lane;
    var values = load_tile(row, start, 32u, whole);
    // The sums before each vector, of the subgroup's part.
    var before: array<Computed, LOADS>;
    var part_sum = Computed(0);
    for (var nth = 0u; nth < LOADS; nth++) {
        let value = values[nth];
        let two = value.x + value.y;
        let three = two + value.z;
        let four = three + value.w;
        values[nth] = vec4<Computed>(value.x, two, three, four);
        let lanes_before = subgroupExclusiveAdd(four);
        before[nth] = part_sum + lanes_before;
        part_sum += subgroupBroadcast(lanes_before + four, 31u);
    }
    if lane == 0u {
        part_sums[subgroup] = part_sum;
    }
    workgroupBarrier();
    var parts_before = Computed(0);
    var tile_sum = Computed(0);
    for (var nth = 0u; nth < SUBGROUPS; nth++) {
        parts_before = select(parts_before, tile_sum, nth == subgroup);
        tile_sum += part_sums[nth];
    }
    if local_index == 0u {
        publish(tile_states + tile, tile_sum);
    }

    // The first subgroup waits for the tiles of the group, the second one for the groups of the
    // supergroup, and one invocation of the third one for the supergroups.
    var is_earlier = lane < tile % 32u;
    var earlier = tile_states + group * 32u + lane;
    if subgroup == 1u {
        is_earlier = lane < group % 32u;
        earlier = group_states + supergroup * 32u + lane;
    } else if subgroup >= 2u {
        is_earlier = local_index == 64u && supergroup > 0u;
        earlier = supergroup_states + supergroup - 1u;
    }
    var earlier_sum = Computed(0);
    if is_earlier {
        earlier_sum = wait_for(earlier);
    }
    earlier_sum = subgroupAdd(earlier_sum);
    if local_index == 0u && tile % 32u == 31u {
        publish(group_states + group, earlier_sum + tile_sum);
    }
    if lane == 0u {
        earlier_sums[subgroup] = earlier_sum;
    }
    workgroupBarrier();
    let tiles_before = (earlier_sums[2] + earlier_sums[1]) + earlier_sums[0];
    if local_index == 0u && tile % 1024u == 1023u {
        publish(supergroup_states + supergroup, tiles_before + tile_sum);
    }
    let carry = tiles_before + parts_before;
    if whole {
        for (var nth = 0u; nth < LOADS; nth++) {
            store_whole(row, start + nth * 32u, prefix_sums(carry + before[nth], values[nth]));
        }
    } else {
        for (var nth = 0u; nth < LOADS; nth++) {
            store(row, start + nth * 32u, prefix_sums(carry + before[nth], values[nth]));
        }
    }
}
