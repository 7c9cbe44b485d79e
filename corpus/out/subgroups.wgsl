enable subgroups;
diagnostic(off, subgroup_uniformity);

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> places: array<vec4<u32>>;

@compute @workgroup_size(128)
fn subgroups(
    @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
    @builtin(num_subgroups) num_subgroups: u32,
    @builtin(subgroup_id) subgroup_id: u32,
    @builtin(subgroup_invocation_id) subgroup_invocation_id: u32,
    @builtin(subgroup_size) subgroup_size: u32,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    let x8 = arrayLength(&input);
    let x11 = arrayLength(&sums);
    let x12 = arrayLength(&places);
    let x13 = workgroup_id.x * 128u;
    let x14 = x13 + local_invocation_id.x;
    let x15 = x8 - 1u;
    let x16 = min(x14, x15);
    let x17 = input[x16];
    let x18 = subgroupAdd(x17);
    let x19 = subgroupExclusiveAdd(x17);
    let x20 = subgroupShuffleXor(x17, 1u);
    let x21 = x17 > 0.0f;
    let x22 = subgroupBallot(x21).x;
    let x23 = subgroup_invocation_id == 0u;
    let x24 = x11 - 1u;
    if x23 {
        let x25 = min(subgroup_id, x24);
        let x26 = x18 + x20;
        let x27 = x26 + x19;
        sums[x25] = x27;
    }
    let x28 = x12 - 1u;
    let x29 = min(x14, x28);
    places[x29] = vec4<u32>(subgroup_size, subgroup_id, num_subgroups, x22);
}
