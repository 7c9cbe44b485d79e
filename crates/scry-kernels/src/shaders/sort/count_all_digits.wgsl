// Counts the four digits of all keys in one pass. Preceded by `encode`.

struct Parameters {
    count: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> keys: array<u32>;
// Tickets of passes, then the counts of the 256 values of each digit.
@group(0) @binding(1) var<storage, read_write> states: array<atomic<u32>>;

const ITEMS: u32 = 16u;
const TILE: u32 = 256u * ITEMS;
// Neighbouring invocations have different copies of counters, so that equal keys do not all wait for
// the same one.
const COPIES: u32 = 4u;

var<workgroup> counts: array<atomic<u32>, 4096>;

fn count_key(local_index: u32, key: u32) {
    let code = encode(key);
    let copy = local_index % COPIES;
    for (var digit = 0u; digit < 4u; digit++) {
        let value = (code >> (8u * digit)) & 255u;
        atomicAdd(&counts[(digit * 256u + value) * COPIES + copy], 1u);
    }
}

@compute @workgroup_size(256)
fn count_all_digits(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    for (var nth = 0u; nth < 16u; nth++) {
        atomicStore(&counts[nth * 256u + local_index], 0u);
    }
    workgroupBarrier();
    let tiles = parameters.count / TILE;
    let rounds = (tiles + groups.x - 1u - group.x) / groups.x;
    for (var round = 0u; round < rounds; round++) {
        let first = (group.x + round * groups.x) * TILE + local_index;
        var loaded: array<u32, ITEMS>;
        for (var nth = 0u; nth < ITEMS; nth++) {
            loaded[nth] = keys[first + nth * 256u];
        }
        for (var nth = 0u; nth < ITEMS; nth++) {
            count_key(local_index, loaded[nth]);
        }
    }
    if group.x == 0u {
        for (var at = tiles * TILE + local_index; at < parameters.count; at += 256u) {
            count_key(local_index, keys[at]);
        }
    }
    workgroupBarrier();
    for (var nth = 0u; nth < 4u; nth++) {
        let counter = nth * 256u + local_index;
        var count = 0u;
        for (var copy = 0u; copy < COPIES; copy++) {
            count += atomicLoad(&counts[counter * COPIES + copy]);
        }
        if count > 0u {
            atomicAdd(&states[4u + counter], count);
        }
    }
}
