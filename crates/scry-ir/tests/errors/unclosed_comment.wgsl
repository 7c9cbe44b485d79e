@compute @workgroup_size(1) fn main() {}
/* never closed
