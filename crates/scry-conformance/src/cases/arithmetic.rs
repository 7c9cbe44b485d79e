//! 32-bit integers: wrapping, division, shifts and comparison, including operands for which
//! hardware leaves the result undefined.

use scry_gpu::DeviceInfo;

use crate::case::Case;
use crate::random::{RandomWords, all_pairs};
use crate::table::{Row, table};

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;

/// Corner cases of signed and unsigned arithmetic, as bits.
const CORNERS: [u32; 16] =
    [0, 1, 2, 3, 7, 31, 32, 33, 35, 0xffff, 0x1_0000, MAX, MIN, MIN + 1, u32::MAX - 1, u32::MAX];

fn pairs() -> Vec<[u32; 2]> {
    let mut pairs = all_pairs(&CORNERS);
    let random: Vec<u32> = RandomWords(1).take(200).collect();
    pairs.extend(random.chunks(2).map(|pair| [pair[0], pair[1]]));
    pairs
}

/// WGSL: `x / 0` is `x`.
fn udiv(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(a)
}

/// WGSL: `x % 0` is 0.
fn urem(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(0)
}

/// WGSL: `x / 0` is `x`, and so is the smallest number divided by -1.
fn idiv(a: u32, b: u32) -> u32 {
    let (a, b) = (a as i32, b as i32);
    a.checked_div(b).unwrap_or(a) as u32
}

/// WGSL: `x % 0` is 0, and so is the smallest number modulo -1. The sign is the dividend's.
fn irem(a: u32, b: u32) -> u32 {
    (a as i32).checked_rem(b as i32).unwrap_or(0) as u32
}

fn signed(f: impl Fn(i32, i32) -> i32, a: u32, b: u32) -> u32 {
    f(a as i32, b as i32) as u32
}

const UNSIGNED: [Row; 24] = [
    ("a + b", u32::wrapping_add),
    ("a - b", u32::wrapping_sub),
    ("a * b", u32::wrapping_mul),
    ("a / b", udiv),
    ("a % b", urem),
    ("a & b", |a, b| a & b),
    ("a | b", |a, b| a | b),
    ("a ^ b", |a, b| a ^ b),
    ("~a", |a, _| !a),
    ("a << b", u32::wrapping_shl),
    ("a >> b", u32::wrapping_shr),
    ("min(a, b)", u32::min),
    ("max(a, b)", u32::max),
    ("clamp(a, 5u, 100u)", |a, _| a.clamp(5, 100)),
    ("abs(a)", |a, _| a),
    ("u32(a < b)", |a, b| (a < b).into()),
    ("u32(a <= b)", |a, b| (a <= b).into()),
    ("u32(a > b)", |a, b| (a > b).into()),
    ("u32(a >= b)", |a, b| (a >= b).into()),
    ("u32(a == b)", |a, b| (a == b).into()),
    ("u32(a != b)", |a, b| (a != b).into()),
    ("select(a, b, a < b)", u32::max),
    ("dot(vec3(a, b, 3u), vec3(b, a, a))", |a, b| {
        let product = a.wrapping_mul(b);
        product.wrapping_add(product).wrapping_add(a.wrapping_mul(3))
    }),
    ("(vec2(a, 7u) / vec2(b, b)).y", |_, b| udiv(7, b)),
];

const SIGNED: [Row; 24] = [
    ("a + b", |a, b| signed(i32::wrapping_add, a, b)),
    ("a - b", |a, b| signed(i32::wrapping_sub, a, b)),
    ("a * b", |a, b| signed(i32::wrapping_mul, a, b)),
    ("a / b", idiv),
    ("a % b", irem),
    ("-a", |a, _| a.wrapping_neg()),
    ("~a", |a, _| !a),
    ("a & b", |a, b| a & b),
    ("a << y", |a, b| a.wrapping_shl(b)),
    ("a >> y", |a, b| (a as i32).wrapping_shr(b) as u32),
    ("min(a, b)", |a, b| signed(i32::min, a, b)),
    ("max(a, b)", |a, b| signed(i32::max, a, b)),
    ("clamp(a, -5, 100)", |a, _| (a as i32).clamp(-5, 100) as u32),
    ("abs(a)", |a, _| (a as i32).wrapping_abs() as u32),
    ("sign(a)", |a, _| (a as i32).signum() as u32),
    ("i32(a < b)", |a, b| ((a as i32) < b as i32).into()),
    ("i32(a <= b)", |a, b| (a as i32 <= b as i32).into()),
    ("i32(a > b)", |a, b| (a as i32 > b as i32).into()),
    ("i32(a >= b)", |a, b| (a as i32 >= b as i32).into()),
    ("i32(a == b)", |a, b| (a == b).into()),
    ("i32(a != b)", |a, b| (a != b).into()),
    ("(vec2(a, 7) / vec2(b, b)).x", idiv),
    ("(vec3(7, a, a) % vec3(b, b, b)).y", irem),
    ("(vec2(a, a) >> vec2(y, 31u)).y", |a, _| (a as i32 >> 31) as u32),
];

pub(crate) fn unsigned_arithmetic(_: &DeviceInfo) -> Vec<Case> {
    table("let a = x; let b = y;", &UNSIGNED, &pairs())
}

pub(crate) fn signed_arithmetic(_: &DeviceInfo) -> Vec<Case> {
    let words = SIGNED.map(|(expression, host)| (format!("bitcast<u32>({expression})"), host));
    let prelude = "let a = bitcast<i32>(x); let b = bitcast<i32>(y);";
    table(prelude, &words, &pairs())
}

pub(crate) fn assignment_operators(_: &DeviceInfo) -> Vec<Case> {
    const CASES: [Row; 11] = [
        ("v0", u32::wrapping_add),
        ("v1", u32::wrapping_sub),
        ("v2", u32::wrapping_mul),
        ("v3", udiv),
        ("v4", urem),
        ("v5", |a, b| a & b),
        ("v6", |a, b| a | b),
        ("v7", |a, b| a ^ b),
        ("v8", u32::wrapping_shl),
        ("v9", u32::wrapping_shr),
        ("v10", |a, _| a.wrapping_add(1)),
    ];
    let operators = ["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="];
    let mut prelude = String::from("var v10 = x; v10++;\n");
    for (index, operator) in operators.iter().enumerate() {
        prelude += &format!("var v{index} = x; v{index} {operator} y;\n");
    }
    table(&prelude, &CASES, &pairs())
}

pub(crate) fn short_circuits_skip_the_second_operand(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<private> calls: u32;

        fn call(value: bool) -> bool {
            calls++;
            return value;
        }

        @compute @workgroup_size(1)
        fn main() {
            let no = input[0] == 1u;
            let yes = !no;
            out[0] = u32(no && call(true));
            out[1] = calls;
            out[2] = u32(yes || call(false));
            out[3] = calls;
            out[4] = u32(yes && call(true));
            out[5] = u32(no || call(false));
            out[6] = calls;
            out[7] = u32(no & call(true)) + u32(yes | call(false));
            out[8] = calls;
        }";
    let want = vec![0, 0, 1, 0, 1, 0, 2, 1, 4];
    Case::new("", source).words(&[&[0]]).output(want).one_workgroup()
}
