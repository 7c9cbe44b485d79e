@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<workgroup> workgroup0: array<f32, 128>;

@compute @workgroup_size(128)
fn reduce(
    @builtin(local_invocation_id) local_invocation_id: vec3<u32>,
    @builtin(num_workgroups) num_workgroups: vec3<u32>,
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
) {
    var v0: u32;
    var v1: u32;
    var v2: f32;
    let x6 = arrayLength(&input);
    let x8 = arrayLength(&sums);
    v0 = 64u;
    let x9 = workgroup_id.x * 128u;
    let x10 = x9 + local_invocation_id.x;
    v1 = x10;
    let x11 = num_workgroups.x * 128u;
    loop {
        let x12 = v1;
        let x13 = x12 < x6;
        if !x13 {
            break;
        }
        let x14 = v2;
        let x15 = input[x12];
        let x16 = x14 + x15;
        v2 = x16;
        let x17 = x12 + x11;
        v1 = x17;
    }
    let x18 = v2;
    workgroup0[local_invocation_id.x] = x18;
    workgroupBarrier();
    loop {
        let x19 = v0;
        let x20 = x19 > 0u;
        if !x20 {
            break;
        }
        let x21 = local_invocation_id.x < x19;
        if x21 {
            let x22 = workgroup0[local_invocation_id.x];
            let x23 = local_invocation_id.x + x19;
            let x24 = workgroup0[x23];
            let x25 = x22 + x24;
            workgroup0[local_invocation_id.x] = x25;
        }
        workgroupBarrier();
        let x26 = x19 >> 1u;
        v0 = x26;
    }
    let x27 = local_invocation_id.x == 0u;
    let x28 = x8 - 1u;
    if x27 {
        let x29 = min(workgroup_id.x, x28);
        let x30 = workgroup0[0u];
        sums[x29] = x30;
    }
}
