@group(0) @binding(0) var<storage, read_write> x: array<u32>;

fn f0(x: u32) -> u32 { return x * 3u; }
fn f1(x: u32) -> u32 { return f0(x) + f0(x + 1u); }
fn f2(x: u32) -> u32 { return f1(x) + f1(x + 1u); }
fn f3(x: u32) -> u32 { return f2(x) + f2(x + 1u); }
fn f4(x: u32) -> u32 { return f3(x) + f3(x + 1u); }
fn f5(x: u32) -> u32 { return f4(x) + f4(x + 1u); }
fn f6(x: u32) -> u32 { return f5(x) + f5(x + 1u); }
fn f7(x: u32) -> u32 { return f6(x) + f6(x + 1u); }
fn f8(x: u32) -> u32 { return f7(x) + f7(x + 1u); }
fn f9(x: u32) -> u32 { return f8(x) + f8(x + 1u); }
fn f10(x: u32) -> u32 { return f9(x) + f9(x + 1u); }
fn f11(x: u32) -> u32 { return f10(x) + f10(x + 1u); }
fn f12(x: u32) -> u32 { return f11(x) + f11(x + 1u); }
fn f13(x: u32) -> u32 { return f12(x) + f12(x + 1u); }
fn f14(x: u32) -> u32 { return f13(x) + f13(x + 1u); }
fn f15(x: u32) -> u32 { return f14(x) + f14(x + 1u); }
fn f16(x: u32) -> u32 { return f15(x) + f15(x + 1u); }
fn f17(x: u32) -> u32 { return f16(x) + f16(x + 1u); }
fn f18(x: u32) -> u32 { return f17(x) + f17(x + 1u); }
fn f19(x: u32) -> u32 { return f18(x) + f18(x + 1u); }
fn f20(x: u32) -> u32 { return f19(x) + f19(x + 1u); }
fn f21(x: u32) -> u32 { return f20(x) + f20(x + 1u); }
fn f22(x: u32) -> u32 { return f21(x) + f21(x + 1u); }
fn f23(x: u32) -> u32 { return f22(x) + f22(x + 1u); }

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) { x[i] = f23(x[i]); }
