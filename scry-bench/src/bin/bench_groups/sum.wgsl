// Adds up rows of 2176 numbers.

var<immediate> rows: u32;
@group(0) @binding(0) var<storage, read> partial: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(64)
fn add_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let column = group.x * 64u + index;
    var sum = 0u;
    for (var row = 0u; row < rows; row++) {
        let at = row * 2176u + column;
        if at < arrayLength(&partial) { sum += partial[at]; }
    }
    sums[column] = sum;
}
