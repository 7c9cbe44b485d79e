// Computes one result per workgroup, over every num_workgroups.x-th run of 2048 values. The eight
// values of an invocation are 256 apart: loads are coalesced, and eight are in flight at once.
//
// Appended to one.wgsl, one_vec4.wgsl or two.wgsl, which define `Value` and its loads, and to
// sum.wgsl, max.wgsl or min.wgsl, which define the operation.

// Invocations of a workgroup, and values of a run.
const LANES: u32 = 256u;
const RUN: u32 = 2048u;

var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n = count();
    let runs = n / RUN;
    let rounds = (runs + groups.x - 1u) / groups.x;
    var total = Value(IDENTITY);
    for (var round = 0u; round < rounds; round++) {
        let run = round * groups.x + group.x;
        if run < runs {
            let i = run * RUN + lane;
            let v0 = load(i);
            let v1 = load(i + LANES);
            let v2 = load(i + 2u * LANES);
            let v3 = load(i + 3u * LANES);
            let v4 = load(i + 4u * LANES);
            let v5 = load(i + 5u * LANES);
            let v6 = load(i + 6u * LANES);
            let v7 = load(i + 7u * LANES);
            let low = combine(combine(v0, v1), combine(v2, v3));
            let high = combine(combine(v4, v5), combine(v6, v7));
            total = combine(total, combine(low, high));
        }
    }
    // Distributes the values after the last whole run over the workgroups, in rows of LANES values.
    let rest = n - runs * RUN;
    let rows = (rest + LANES - 1u) / LANES;
    let row_rounds = (rows + groups.x - 1u) / groups.x;
    for (var round = 0u; round < row_rounds; round++) {
        let row = round * groups.x + group.x;
        let offset = row * LANES + lane;
        if row < rows && offset < rest {
            total = combine(total, load(runs * RUN + offset));
        }
    }

    partial[lane] = fold(total);
    workgroupBarrier();
    for (var quartering = 0u; quartering < 4u; quartering++) {
        let quarter = 64u >> (2u * quartering);
        if lane < quarter {
            let low = combine_scalar(partial[lane], partial[lane + quarter]);
            let high = combine_scalar(
                partial[lane + 2u * quarter],
                partial[lane + 3u * quarter],
            );
            partial[lane] = combine_scalar(low, high);
        }
        workgroupBarrier();
    }
    if lane == 0u {
        results[group.x] = partial[0];
    }
}
