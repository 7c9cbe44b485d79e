// override: RADIUS=true
override RADIUS: u32 = 2;

@compute @workgroup_size(RADIUS)
fn main() {}
