// override: RADUIS=3
@id(7) override RADIUS: u32;
override SCALE = 1.0;
@compute @workgroup_size(64)
fn main() {}
