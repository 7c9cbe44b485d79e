// Finds the largest elements of each segment of a row: by radix select of 8 bits at a time, of their
// keys, then of their positions, where equal keys are more than wanted. Preceded by the elements'
// definitions and order, by sums_before.wgsl, and by
//
//     const ITEMS: u32, the elements of an invocation;
//     fn position_of(row: u32, at: u32) -> u32, of an element in its row;
//     fn finish(row: u32, segment: u32, wanted: u32, local_index: u32), what is done with `entries`.
//
// NaN is the largest; zeros are equal.

struct Parameters {
    columns: u32,
    // Candidates of a row: its elements, or what an earlier pass has selected.
    length: u32,
    // How many are selected.
    k: u32,
    // Candidates of a row that are selected.
    selected: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<Stored>;

const SEGMENT: u32 = 256u * ITEMS;

// Neighbouring invocations have different copies of counters.
const COPIES: u32 = 4u;

var<workgroup> counts: array<atomic<u32>, 1024>;
// The digit of the least that is selected; how many with that digit are selected, and how many have it.
var<workgroup> found: vec3<u32>;
var<workgroup> next: atomic<u32>;
// What is selected: keys, and complements of positions.
var<workgroup> entries: array<vec2<u32>, 1024>;

fn key_of(value: Computed) -> u32 {
    return select(ordinal_of_equal_zeros(value), 0xffffffffu, is_nan(value));
}

// Finds the digit at which `remaining` elements are reached, from the largest digit on.
fn find_digit(local_index: u32, remaining: u32) -> vec3<u32> {
    let digit = 255u - local_index;
    var count = 0u;
    for (var copy = 0u; copy < COPIES; copy++) {
        count += atomicLoad(&counts[digit * COPIES + copy]);
    }
    let before = sums_before(local_index, count).x;
    if before < remaining && before + count >= remaining {
        found = vec3<u32>(digit, remaining - before, count);
    }
    return workgroupUniformLoad(&found);
}

@compute @workgroup_size(256)
fn select_largest(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let segment = group.x;
    let row = group.y;
    let first = segment * SEGMENT;
    let wanted = min(parameters.k, parameters.length - first);
    // Beyond the last candidate both are 0: the least of all, since positions are below 2^32 - 1.
    var keys: array<u32, ITEMS>;
    var places: array<u32, ITEMS>;
    // Loops do not start at 0, so that they are unrolled and the arrays are in registers.
    for (var nth = 1u; nth <= ITEMS; nth++) {
        let at = first + (nth - 1u) * 256u + local_index;
        let position = position_of(row, min(at, parameters.length - 1u));
        let key = key_of(widen(x[row * parameters.columns + position]));
        keys[nth - 1u] = select(0u, key, at < parameters.length);
        places[nth - 1u] = select(0u, ~position, at < parameters.length);
    }
    // The least key and place that are selected.
    var least_key = 0u;
    var least_place = 0u;
    var remaining = wanted;
    for (var round = 0u; round < 8u; round++) {
        for (var nth = 0u; nth < COPIES; nth++) {
            atomicStore(&counts[nth * 256u + local_index], 0u);
        }
        workgroupBarrier();
        let shift = 24u - 8u * (round % 4u);
        let decided = ~(0xffffffffu >> (8u * (round % 4u)));
        for (var nth = 0u; nth < ITEMS; nth++) {
            let is_key = round < 4u;
            let word = select(places[nth], keys[nth], is_key);
            let least = select(least_place, least_key, is_key);
            if (word & decided) == least && (is_key || keys[nth] == least_key) {
                let counter = ((word >> shift) & 255u) * COPIES + local_index % COPIES;
                atomicAdd(&counts[counter], 1u);
            }
        }
        workgroupBarrier();
        let digit = find_digit(local_index, remaining);
        if round < 4u {
            least_key |= digit.x << shift;
        } else {
            least_place |= digit.x << shift;
        }
        remaining = digit.y;
        // All with the digits found are selected.
        if digit.y == digit.z {
            break;
        }
    }
    for (var nth = 1u; nth <= ITEMS; nth++) {
        let key = keys[nth - 1u];
        let place = places[nth - 1u];
        if key > least_key || (key == least_key && place >= least_place) {
            let entry = atomicAdd(&next, 1u);
            if entry < wanted {
                entries[entry] = vec2<u32>(key, place);
            }
        }
    }
    workgroupBarrier();
    finish(row, segment, wanted, local_index);
}
