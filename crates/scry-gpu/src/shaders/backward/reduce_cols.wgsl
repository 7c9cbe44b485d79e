// Sums every column of a row-major matrix. A workgroup sums 32 adjacent columns over every
// num_workgroups.y-th run of 8 rows, with coalesced reads, and writes one row of partial sums.

struct Shape {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
var<immediate> shape: Shape;

var<workgroup> partial: array<f32, 256>;

@compute @workgroup_size(32, 8)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let column = group.x * 32u + local.x;
    let runs = (shape.rows + 7u) / 8u;
    let rounds = (runs + groups.y - 1u) / groups.y;
    var sum = 0.0;
    for (var round = 0u; round < rounds; round++) {
        let run = round * groups.y + group.y;
        let row = run * 8u + local.y;
        if run < runs && row < shape.rows && column < shape.columns {
            sum += x[row * shape.columns + column];
        }
    }
    partial[local_index] = sum;
    workgroupBarrier();
    for (var halving = 0u; halving < 3u; halving++) {
        let half = 4u >> halving;
        if local.y < half {
            partial[local_index] += partial[local_index + half * 32u];
        }
        workgroupBarrier();
    }
    if local.y == 0u && column < shape.columns {
        sums[group.y * shape.columns + column] = partial[local_index];
    }
}
