// Sorts at most 2048 keys in place, and their values. Preceded by parameters.wgsl, `encode`,
// round.wgsl, and by
//
//     fn put_key(at: u32, key: u32); fn get_value(at: u32) -> u32; fn put_value(at: u32, value: u32),
//
// and the binding of `keys`.

@compute @workgroup_size(256)
fn sort_tile(@builtin(local_invocation_index) local_index: u32) {
    // Positions of keys.
    var entries: array<u32, ITEMS>;
    for (var nth = 0u; nth < ITEMS; nth++) {
        entries[nth] = local_index * ITEMS + nth;
    }
    for (var shift = 0u; shift < 32u; shift += 4u) {
        var digits: array<u32, ITEMS>;
        for (var nth = 0u; nth < ITEMS; nth++) {
            digits[nth] = 15u;
            if entries[nth] < parameters.count {
                digits[nth] = (encode(keys[entries[nth]]) >> shift) & 15u;
            }
        }
        sort_round(local_index, digits, entries);
        for (var nth = 0u; nth < ITEMS; nth++) {
            entries[nth] = words[local_index * ITEMS + nth];
        }
    }
    var sorted: array<u32, ITEMS>;
    var values: array<u32, ITEMS>;
    for (var nth = 0u; nth < ITEMS; nth++) {
        // Positions beyond the last key are last.
        let source = words[nth * 256u + local_index];
        if source < parameters.count {
            sorted[nth] = keys[source];
            values[nth] = get_value(source);
        }
    }
    // All have been read before any is written.
    storageBarrier();
    for (var nth = 0u; nth < ITEMS; nth++) {
        let to = nth * 256u + local_index;
        if to < parameters.count {
            put_key(to, sorted[nth]);
            put_value(to, values[nth]);
        }
    }
}
