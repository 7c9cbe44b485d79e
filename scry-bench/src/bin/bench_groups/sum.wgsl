// Adds up rows of 1088 numbers: each workgroup row y adds `rows` of them.

var<immediate> rows: u32;
@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(64)
fn add_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let column = group.x * 64u + index;
    var sum = 0.0;
    for (var row = 0u; row < rows; row++) {
        let at = (group.y * rows + row) * 1088u + column;
        if at < arrayLength(&partial) { sum += partial[at]; }
    }
    sums[group.y * 1088u + column] = sum;
}
