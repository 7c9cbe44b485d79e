// override: RADIUS=-1
override RADIUS: u32 = 2;
@compute @workgroup_size(64)
fn main() {}
