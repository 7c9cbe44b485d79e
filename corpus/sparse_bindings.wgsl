// Bindings in several groups, with gaps, out of order, one of them unused; builtins in a structure.

struct Ids {
    @builtin(workgroup_id) group: vec3u,
    @builtin(global_invocation_id) global: vec3u,
    @builtin(local_invocation_index) local: u32,
    @builtin(num_workgroups) groups: vec3u,
}

@group(3) @binding(7) var<storage, read_write> last: array<u32>;
@group(0) @binding(2) var<storage, read> first: array<u32>;
@group(1) @binding(0) var<storage, read> unused: array<u32>;
@group(1) @binding(9) var<uniform> offset: vec4u;

@compute @workgroup_size(8, 4, 2)
fn sparse_bindings(ids: Ids, @builtin(local_invocation_id) local: vec3u) {
    let at = ids.global.x + 8u * ids.groups.x * (ids.global.y + ids.global.z * 4u);
    last[at] = first[at % 5u] + offset.y + ids.local + local.z + ids.group.x;
}
