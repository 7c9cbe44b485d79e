// y = a·x + y, four elements for each invocation. Workgroups are numbered row by row, so that a
// two-dimensional grid reaches lengths of more than 65535 workgroups.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
struct Parameters {
    a: f32,
}

var<immediate> parameters: Parameters;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let i = (group.y * groups.x + group.x) * 256u + local_index;
    if i < arrayLength(&x) && i < arrayLength(&y) {
        y[i] = fma(vec4(parameters.a), x[i], y[i]);
    }
}
