// Counts elements. Preceded by `begin`, `count_element` and `end`.

struct Parameters {
    count: u32,
    bins: u32,
}

var<immediate> parameters: Parameters;

@group(0) @binding(0) var<storage, read> x: array<u32>;

const ITEMS: u32 = 16u;
const TILE: u32 = 256u * ITEMS;

@compute @workgroup_size(256)
fn histogram(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    begin(local_index);
    let tiles = parameters.count / TILE;
    let rounds = (tiles + groups.x - 1u - group.x) / groups.x;
    for (var round = 0u; round < rounds; round++) {
        let first = (group.x + round * groups.x) * TILE + local_index;
        var loaded: array<u32, ITEMS>;
        for (var nth = 0u; nth < ITEMS; nth++) {
            loaded[nth] = x[first + nth * 256u];
        }
        for (var nth = 0u; nth < ITEMS; nth++) {
            count_element(local_index, loaded[nth]);
        }
    }
    // The elements after the last whole tile.
    if group.x == groups.x - 1u {
        for (var nth = 0u; nth < ITEMS; nth++) {
            let at = tiles * TILE + nth * 256u + local_index;
            if at < parameters.count {
                count_element(local_index, x[at]);
            }
        }
    }
    end(local_index);
}
