// Replaces each x by 3x + 1: tests whether a device computes.

@group(0) @binding(0) var<storage, read_write> numbers: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&numbers) {
        numbers[id.x] = 3u * numbers[id.x] + 1u;
    }
}
