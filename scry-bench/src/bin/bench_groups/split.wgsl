// Adds up rows of 1088 numbers, their low and their high 16 bits apart, so that no sum overflows:
// each workgroup row y adds `rows` of them.

var<immediate> rows: u32;
@group(0) @binding(0) var<storage, read> partial: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size(64)
fn split_rows(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
    let column = group.x * 64u + index;
    var low = 0u;
    var high = 0u;
    for (var row = 0u; row < rows; row++) {
        let at = (group.y * rows + row) * 1088u + column;
        if at < arrayLength(&partial) {
            low += partial[at] & 0xffffu;
            high += partial[at] >> 16u;
        }
    }
    sums[group.y * 2176u + column] = low;
    sums[group.y * 2176u + 1088u + column] = high;
}
