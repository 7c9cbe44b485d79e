// A pass of a radix sort by 8 bits that reads and writes everything once (OneSweep). Tiles are taken in
// order from a counter. The keys of a tile are ranked by subgroups, and sorted by the digit in
// workgroup memory. Where the run of a digit goes is found by decoupled look-back: each tile publishes
// its counts of digits, and one invocation per digit adds up those of the tiles before, back to one
// that has published its prefix sum.
//
// Subgroups must have 32 invocations. Preceded by `encode` and `decode`, and by
//
//     const THREADS: u32, of a workgroup, at least 256; const ITEMS: u32, the keys of an invocation;
//     const HAS_VALUES: bool; fn get_value(at: u32) -> u32; fn put_value(at: u32, value: u32);
//     fn put_key(at: u32, key: u32); the binding of `keys`; and
//     fn rank_keys(codes: array<u32, ITEMS>, shift: u32, lane: u32, counters: u32)
//         -> array<u32, ITEMS>, which calls `rank_key` for the digit of each of them: compilers do not
//     unroll loops of subgroup operations.

struct Parameters {
    // Keys, fewer than 2^30.
    count: u32,
    // The pass, from 0, by bits `8 * nth` and following.
    nth: u32,
    // Where the states of the tiles are.
    tile_states: u32,
}

var<immediate> parameters: Parameters;

// Tickets of passes; where the keys with each value of each digit start; then the states of all
// tiles, 256 of each. A state is a count, of the tile or of all tiles up to it, with a flag.
@group(0) @binding(4) var<storage, read_write> states: array<atomic<u32>>;

const OF_TILE: u32 = 1u << 30u;
const OF_PREFIX: u32 = 2u << 30u;
const COUNT: u32 = OF_TILE - 1u;

const SUBGROUPS: u32 = THREADS / 32u;
const TILE: u32 = THREADS * ITEMS;

var<workgroup> taken: u32;
// Keys, then values, in the order of the digit.
var<workgroup> sorted: array<u32, TILE>;
// Of each subgroup the counts of digits; then how many keys of a digit are in earlier subgroups.
var<workgroup> counts: array<atomic<u32>, SUBGROUPS * 256u>;
// Where a digit starts in the tile; then the distance from there to where it goes.
var<workgroup> starts: array<u32, 256>;
var<workgroup> sums: array<u32, 8>;

// Removes the lanes whose digit differs in a bit.
fn match_bit(peers: u32, digit: u32, bit: u32) -> u32 {
    let is_set = (digit & bit) != 0u;
    let votes = subgroupBallot(is_set).x;
    return peers & select(~votes, votes, is_set);
}

// Returns how many keys with the same digit are before an invocation's key in the subgroup, and counts
// those of the subgroup. `counters` are those of the subgroup.
fn rank_key(digit: u32, lane: u32, counters: u32) -> u32 {
    // The lanes with the same digit.
    var peers = match_bit(0xffffffffu, digit, 1u);
    peers = match_bit(peers, digit, 2u);
    peers = match_bit(peers, digit, 4u);
    peers = match_bit(peers, digit, 8u);
    peers = match_bit(peers, digit, 16u);
    peers = match_bit(peers, digit, 32u);
    peers = match_bit(peers, digit, 64u);
    peers = match_bit(peers, digit, 128u);
    let rank = countOneBits(peers & ((1u << lane) - 1u));
    var count = 0u;
    if rank == 0u {
        count = atomicAdd(&counts[counters + digit], countOneBits(peers));
    }
    return rank + subgroupShuffle(count, firstTrailingBit(peers));
}

// Returns the number of keys with a digit in the tiles before one.
fn look_back(tile: u32, digit: u32) -> u32 {
    var count = 0u;
    var other = tile;
    loop {
        if other == 0u {
            break;
        }
        let state = atomicLoad(&states[parameters.tile_states + (other - 1u) * 256u + digit]);
        if state != 0u {
            count += state & COUNT;
            other = select(other - 1u, 0u, state >= OF_PREFIX);
        }
    }
    return count;
}

@compute @workgroup_size(THREADS)
fn sweep(
    @builtin(local_invocation_index) local_index: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    if local_index == 0u {
        taken = atomicAdd(&states[parameters.nth], 1u);
    }
    for (var nth = 0u; nth < 8u; nth++) {
        atomicStore(&counts[nth * THREADS + local_index], 0u);
    }
    let tile = workgroupUniformLoad(&taken);
    let first = tile * TILE;
    let rest = parameters.count - first;
    let start = first + subgroup * 32u * ITEMS + lane;
    let shift = 8u * parameters.nth;
    var codes: array<u32, ITEMS>;
    let is_whole = rest >= TILE;
    if is_whole {
        for (var nth = 0u; nth < ITEMS; nth++) {
            codes[nth] = encode(keys[start + nth * 32u]);
        }
    } else {
        for (var nth = 0u; nth < ITEMS; nth++) {
            // Beyond the last key the largest ones, which stay behind it.
            codes[nth] = 0xffffffffu;
            if start + nth * 32u < parameters.count {
                codes[nth] = encode(keys[start + nth * 32u]);
            }
        }
    }
    let counters = (subgroup % SUBGROUPS) * 256u;
    var ranks = rank_keys(codes, shift, lane, counters);
    workgroupBarrier();

    // One invocation per digit.
    var digit_count = 0u;
    if local_index < 256u {
        for (var other = 0u; other < SUBGROUPS; other++) {
            let counter = other * 256u + local_index;
            let count = atomicLoad(&counts[counter]);
            atomicStore(&counts[counter], digit_count);
            digit_count += count;
        }
        let flag = select(OF_TILE, OF_PREFIX, tile == 0u);
        atomicStore(&states[parameters.tile_states + tile * 256u + local_index], digit_count | flag);
    }
    var digit_start = subgroupInclusiveAdd(digit_count);
    if lane == 31u && subgroup < 8u {
        sums[subgroup] = digit_start;
    }
    workgroupBarrier();
    digit_start -= digit_count;
    for (var other = 0u; other < 8u; other++) {
        digit_start += select(0u, sums[other], other < subgroup);
    }
    if local_index < 256u {
        starts[local_index] = digit_start;
    }
    workgroupBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        let digit = (codes[nth] >> shift) & 255u;
        ranks[nth] += starts[digit] + atomicLoad(&counts[counters + digit]);
        sorted[ranks[nth]] = codes[nth];
    }
    var values: array<u32, ITEMS>;
    if HAS_VALUES {
        for (var nth = 0u; nth < ITEMS; nth++) {
            values[nth] = get_value(min(start + nth * 32u, parameters.count - 1u));
        }
    }
    workgroupBarrier();

    if local_index < 256u {
        let count = look_back(tile, local_index);
        let state = parameters.tile_states + tile * 256u + local_index;
        atomicStore(&states[state], (count + digit_count) | OF_PREFIX);
        let base = atomicLoad(&states[4u + parameters.nth * 256u + local_index]);
        starts[local_index] = base + count - digit_start;
    }
    workgroupBarrier();
    var targets: array<u32, ITEMS>;
    for (var nth = 0u; nth < ITEMS; nth++) {
        let position = nth * THREADS + local_index;
        codes[nth] = sorted[position];
        targets[nth] = starts[(codes[nth] >> shift) & 255u] + position;
    }
    if is_whole {
        for (var nth = 0u; nth < ITEMS; nth++) {
            put_key(targets[nth], decode(codes[nth]));
        }
    } else {
        for (var nth = 0u; nth < ITEMS; nth++) {
            if nth * THREADS + local_index < rest {
                put_key(targets[nth], decode(codes[nth]));
            }
        }
    }
    if HAS_VALUES {
        workgroupBarrier();
        for (var nth = 0u; nth < ITEMS; nth++) {
            sorted[ranks[nth]] = values[nth];
        }
        workgroupBarrier();
        if is_whole {
            for (var nth = 0u; nth < ITEMS; nth++) {
                put_value(targets[nth], sorted[nth * THREADS + local_index]);
            }
        } else {
            for (var nth = 0u; nth < ITEMS; nth++) {
                let position = nth * THREADS + local_index;
                if position < rest {
                    put_value(targets[nth], sorted[position]);
                }
            }
        }
    }
}
