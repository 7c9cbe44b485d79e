// unpack4x8 of a bool, beside a condition on a determinant of signs.

@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read> columns: array<mat4x3f>;
@group(0) @binding(2) var<storage, read_write> results: array<vec4i>;

@compute @workgroup_size(1)
fn unpack4x8_beside_determinant(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
) {
    let me = (group.x + groups.x * (group.y + groups.y * group.z)) * 1u + lane;
    let back = groups.x * groups.y * groups.z * 1u - 1u - me;
    if bool(determinant(mat3x3f(
        sign(vec3f(1.0)),
        sign(columns[0u % arrayLength(&columns)][0]) * 2.0,
        sign(columns[0u % arrayLength(&columns)][0]),
    ))) {
        results[back * 2u + 0u] /= vec4i(1i);
    }
    let is_odd = (words[0u % arrayLength(&words)] & 1u) == 1u;
    results[back * 2u + 1u] = unpack4xI8(u32(is_odd));
}
