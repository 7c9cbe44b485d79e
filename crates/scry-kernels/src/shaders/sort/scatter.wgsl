// Moves keys and values to where they belong by a digit: sorts each tile by it, and moves the runs of
// equal digits. Preceded by parameters.wgsl, `encode`, round.wgsl, and by
//
//     fn move_key(source: u32, to: u32), fn move_value(source: u32, to: u32), and the binding of `keys`.

// Of each digit, where the keys of each tile start.
@group(0) @binding(4) var<storage, read> starts: array<u32>;

// Where the keys of a digit start in the sorted tile.
var<workgroup> tile_starts: array<u32, 256>;

@compute @workgroup_size(256)
fn scatter(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let first = group.x * TILE;
    // Digits, and the positions of their keys in the tile. Positions beyond the last key are last.
    var entries: array<u32, ITEMS>;
    var digits: array<u32, ITEMS>;
    for (var nth = 0u; nth < ITEMS; nth++) {
        let position = local_index * ITEMS + nth;
        var digit = 255u;
        if first + position < parameters.count {
            digit = (encode(keys[first + position]) >> parameters.shift) & 255u;
        }
        entries[nth] = (digit << 11u) | position;
        digits[nth] = digit & 15u;
    }
    sort_round(local_index, digits, entries);
    for (var nth = 0u; nth < ITEMS; nth++) {
        entries[nth] = words[local_index * ITEMS + nth];
        digits[nth] = entries[nth] >> 15u;
    }
    sort_round(local_index, digits, entries);
    for (var nth = 0u; nth < ITEMS; nth++) {
        let position = nth * 256u + local_index;
        entries[nth] = words[position];
        let digit = entries[nth] >> 11u;
        if position == 0u || words[max(position, 1u) - 1u] >> 11u != digit {
            tile_starts[digit] = position;
        }
    }
    workgroupBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        let digit = entries[nth] >> 11u;
        let source = first + (entries[nth] & (TILE - 1u));
        if source < parameters.count {
            let start = starts[digit * parameters.tiles + group.x];
            let to = start + nth * 256u + local_index - tile_starts[digit];
            move_key(source, to);
            move_value(source, to);
        }
    }
}
