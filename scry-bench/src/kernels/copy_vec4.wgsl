// y = x, four elements for each invocation. Workgroups are numbered row by row, as in saxpy_vec4.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let i = (group.y * groups.x + group.x) * 256u + local_index;
    if i < arrayLength(&x) && i < arrayLength(&y) {
        y[i] = x[i];
    }
}
