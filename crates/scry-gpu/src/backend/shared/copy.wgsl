// Copies `src` to `dst`, 16 bytes for each invocation. Workgroups are numbered row by row.

@group(0) @binding(0) var<storage, read> src: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> dst: array<vec4<u32>>;

@compute @workgroup_size(256)
fn copy(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let i = (group.y * groups.x + group.x) * 256u + local_index;
    if i < arrayLength(&src) && i < arrayLength(&dst) {
        dst[i] = src[i];
    }
}
