// Computes one result per workgroup, over every num_workgroups.x-th run of 2048 values. The eight
// values of an invocation are 256 apart: loads are coalesced, and eight are in flight at once.
//
// Appended to one.wgsl, one_vec4.wgsl or two.wgsl, which define `Value` and its loads, and to
// sum.wgsl, max.wgsl or min.wgsl, which define the operation.

// Invocations of a workgroup, and values of a run.
const WORKGROUP_SIZE: u32 = 256u;
const RUN: u32 = 2048u;

var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let n = count();
    let runs = n / RUN;
    let rounds = (runs + groups.x - 1u) / groups.x;
    var total = Value(IDENTITY);
    for (var round = 0u; round < rounds; round++) {
        let run = round * groups.x + group.x;
        if run < runs {
            let i = run * RUN + local_index;
            let v0 = load(i);
            let v1 = load(i + WORKGROUP_SIZE);
            let v2 = load(i + 2u * WORKGROUP_SIZE);
            let v3 = load(i + 3u * WORKGROUP_SIZE);
            let v4 = load(i + 4u * WORKGROUP_SIZE);
            let v5 = load(i + 5u * WORKGROUP_SIZE);
            let v6 = load(i + 6u * WORKGROUP_SIZE);
            let v7 = load(i + 7u * WORKGROUP_SIZE);
            let low = combine(combine(v0, v1), combine(v2, v3));
            let high = combine(combine(v4, v5), combine(v6, v7));
            total = combine(total, combine(low, high));
        }
    }
    // Distributes the values after the last whole run over the workgroups, in rows of
    // WORKGROUP_SIZE values.
    let rest = n - runs * RUN;
    let rows = (rest + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
    let row_rounds = (rows + groups.x - 1u) / groups.x;
    for (var round = 0u; round < row_rounds; round++) {
        let row = round * groups.x + group.x;
        let offset = row * WORKGROUP_SIZE + local_index;
        if row < rows && offset < rest {
            total = combine(total, load(runs * RUN + offset));
        }
    }

    partial[local_index] = fold(total);
    workgroupBarrier();
    for (var quartering = 0u; quartering < 4u; quartering++) {
        let quarter = 64u >> (2u * quartering);
        if local_index < quarter {
            let low = combine_scalar(partial[local_index], partial[local_index + quarter]);
            let high = combine_scalar(
                partial[local_index + 2u * quarter],
                partial[local_index + 3u * quarter],
            );
            partial[local_index] = combine_scalar(low, high);
        }
        workgroupBarrier();
    }
    if local_index == 0u {
        results[group.x] = partial[0];
    }
}
