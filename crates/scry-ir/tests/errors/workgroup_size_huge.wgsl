@compute @workgroup_size(4294967295, 4294967295, 4294967295)
fn main() {}
