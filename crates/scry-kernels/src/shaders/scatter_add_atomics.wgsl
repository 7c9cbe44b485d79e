// Adds consecutive rows of `x` to the rows of `y` that indices select, by atomics. A granule is one
// element. Preceded by row_slots.wgsl.

@group(0) @binding(0) var<storage, read> x: array<Granule>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<atomic<Granule>>;

fn add(slot: Slot, index: u32, value: Granule) {
    if slot.is_used && index < shape.rows {
        atomicAdd(&y[index * shape.granules + slot.granule], value);
    }
}

@compute @workgroup_size(256)
fn scatter_add(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    // Loads are unconditional, so that they are in flight together.
    let a = slot(group, local_index, 0u);
    let b = slot(group, local_index, 1u);
    let c = slot(group, local_index, 2u);
    let d = slot(group, local_index, 3u);
    let value_a = x[a.nth * shape.granules + a.granule];
    let value_b = x[b.nth * shape.granules + b.granule];
    let value_c = x[c.nth * shape.granules + c.granule];
    let value_d = x[d.nth * shape.granules + d.granule];
    add(a, indices[a.nth], value_a);
    add(b, indices[b.nth], value_b);
    add(c, indices[c.nth], value_c);
    add(d, indices[d.nth], value_d);
}
