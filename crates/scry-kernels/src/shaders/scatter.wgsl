// Copies consecutive rows of `x` to the rows of `y` that indices select, each if its index is the
// last one that selects the row. Preceded by the elements' definitions if a granule is one element,
// and by row_slots.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Granule>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<Granule>;
// For each row of `y` the number of the last index that selects it, from 1 on. Other rows have any
// values.
@group(0) @binding(3) var<storage, read> winners: array<u32>;

fn store(slot: Slot, index: u32, winner: u32, value: Granule) {
    if slot.is_used && index < shape.rows && winner == slot.nth + 1u {
        y[index * shape.granules + slot.granule] = value;
    }
}

@compute @workgroup_size(256)
fn scatter(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    // Loads are unconditional, so that they are in flight together.
    let a = slot(group, local_index, 0u);
    let b = slot(group, local_index, 1u);
    let c = slot(group, local_index, 2u);
    let d = slot(group, local_index, 3u);
    let index_a = indices[a.nth];
    let index_b = indices[b.nth];
    let index_c = indices[c.nth];
    let index_d = indices[d.nth];
    let value_a = x[a.nth * shape.granules + a.granule];
    let value_b = x[b.nth * shape.granules + b.granule];
    let value_c = x[c.nth * shape.granules + c.granule];
    let value_d = x[d.nth * shape.granules + d.granule];
    store(a, index_a, winners[index_a], value_a);
    store(b, index_b, winners[index_b], value_b);
    store(c, index_c, winners[index_c], value_c);
    store(d, index_d, winners[index_d], value_d);
}
