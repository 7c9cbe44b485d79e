// Subgroup operations and every subgroup builtin.

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> places: array<vec4u>;

@compute @workgroup_size(128)
fn subgroups(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) count: u32,
) {
    let x = input[id.x];
    let sum = subgroupAdd(x);
    let before = subgroupExclusiveAdd(x);
    let swapped = subgroupShuffleXor(x, 1u);
    let ballot = subgroupBallot(x > 0.0);
    if lane == 0u {
        sums[subgroup] = sum + swapped + before;
    }
    places[id.x] = vec4u(size, subgroup, count, ballot.x);
}
