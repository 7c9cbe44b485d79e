// Sums each workgroup's share of the input through workgroup memory. SIZE must be a power of two.

override SIZE: u32 = 128;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

var<workgroup> partial: array<f32, SIZE>;

@compute @workgroup_size(SIZE)
fn reduce(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) local: u32,
    @builtin(num_workgroups) groups: vec3u,
) {
    var sum = 0.0;
    for (var i = group.x * SIZE + local; i < arrayLength(&input); i += groups.x * SIZE) {
        sum += input[i];
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var stride = SIZE / 2u; stride > 0u; stride >>= 1u) {
        if local < stride {
            partial[local] += partial[local + stride];
        }
        workgroupBarrier();
    }
    if local == 0u {
        sums[group.x] = partial[0];
    }
}
