// override: RADIUS=2.5
override RADIUS: u32 = 2;

@compute @workgroup_size(RADIUS)
fn main() {}
