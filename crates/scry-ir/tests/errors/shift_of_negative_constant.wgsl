const BITS = 32;
@group(0) @binding(0) var<storage, read_write> signs: array<i32>;

@compute @workgroup_size(1)
fn main() {
    signs[0] = -5 >> (BITS * 2);
}
