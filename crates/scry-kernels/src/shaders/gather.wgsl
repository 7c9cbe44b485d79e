// Copies the rows of `x` that indices select to consecutive rows of `y`. Preceded by the elements'
// definitions if a granule is one element, and by row_slots.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Granule>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<Granule>;

fn store(slot: Slot, index: u32, value: Granule) {
    if slot.is_used {
        y[slot.nth * shape.granules + slot.granule] =
            select(Granule(), value, index < shape.rows);
    }
}

@compute @workgroup_size(256)
fn gather(
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
    let value_a = x[index_a * shape.granules + a.granule];
    let value_b = x[index_b * shape.granules + b.granule];
    let value_c = x[index_c * shape.granules + c.granule];
    let value_d = x[index_d * shape.granules + d.granule];
    store(a, index_a, value_a);
    store(b, index_b, value_b);
    store(c, index_c, value_c);
    store(d, index_d, value_d);
}
