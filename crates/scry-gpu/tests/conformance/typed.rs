//! Expressions over scalars of any type, with all kinds of operands: varying, uniform over a
//! workgroup, computed from ids, and under a divergent condition.

use std::fmt::Write as _;

use scry_gpu::{Binding, Device, Features, GpuError, Kernel, Launch, f16};

use crate::harness::{download_words, is_left_out, on_each_device, succeed, upload_words};

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

pub const INTEGERS: [Ty; 6] = [Ty::I16, Ty::U16, Ty::I32, Ty::U32, Ty::I64, Ty::U64];
pub const FLOATS: [Ty; 3] = [Ty::F16, Ty::F32, Ty::F64];
pub const NUMBERS: [Ty; 9] =
    [Ty::I16, Ty::U16, Ty::I32, Ty::U32, Ty::I64, Ty::U64, Ty::F16, Ty::F32, Ty::F64];

impl Ty {
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn bits(self) -> u32 {
        match self {
            Self::I16 | Self::U16 | Self::F16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
        }
    }

    pub fn is_float(self) -> bool {
        FLOATS.contains(&self)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Self::I16 | Self::I32 | Self::I64)
    }

    pub fn feature(self) -> Features {
        match self {
            Self::I16 | Self::U16 => Features::I16,
            Self::I64 | Self::U64 => Features::I64,
            Self::F16 => Features::F16,
            Self::F64 => Features::F64,
            _ => Features::empty(),
        }
    }

    /// Converts bits to the integer.
    pub fn integer(self, bits: u64) -> i128 {
        let unused = 64 - self.bits();
        let top = bits << unused;
        if self.is_signed() { i128::from(top as i64 >> unused) } else { i128::from(top >> unused) }
    }

    /// The low bits of an integer.
    pub fn wrap(self, value: i128) -> u64 {
        value as u64 & u64::MAX >> (64 - self.bits())
    }

    /// Converts bits to the float, exactly.
    pub fn float(self, bits: u64) -> f64 {
        match self {
            Self::F16 => f16::from_bits(bits as u16).to_f64(),
            Self::F32 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }

    /// Returns the bits of the nearest float.
    pub fn nearest(self, value: f64) -> u64 {
        match self {
            Self::F16 => f16::from_f64(value).to_bits().into(),
            Self::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        }
    }

    /// Returns the bits of a small integer.
    pub fn whole(self, value: u32) -> u64 {
        if self.is_float() { self.nearest(value.into()) } else { self.wrap(value.into()) }
    }

    /// Returns the distance of neighbouring floats at a number.
    pub fn ulp(self, value: f64) -> f64 {
        let (digits, least) = match self {
            Self::F16 => (10, -14),
            Self::F32 => (23, -126),
            _ => (52, -1022),
        };
        let exponent = (value.abs().log2().floor() as i32).max(least);
        2f64.powi(exponent) * 2f64.powi(-digits)
    }
}

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Want {
    /// These bits.
    Bits(u64),
    /// This number; zeros may have any sign.
    Number(f64),
    /// At most this many ULP from this number: the number, the ULP.
    Near(f64, f64),
    /// Any.
    Any,
}

/// Computes the expected result of an expression over `a`, `b` (of the type) and `s` (a `u32`),
/// from their bits.
pub type Oracle = Box<dyn Fn(u64, u64, u32) -> Want>;

/// An expression, its type, and its expected result.
pub struct Case {
    pub expression: String,
    pub result: Ty,
    pub oracle: Oracle,
}

impl Case {
    pub fn new(
        expression: impl Into<String>,
        result: Ty,
        oracle: impl Fn(u64, u64, u32) -> Want + 'static,
    ) -> Self {
        Self { expression: expression.into(), result, oracle: Box::new(oracle) }
    }

    /// A condition: 1 if it is true.
    pub fn holds(
        expression: impl std::fmt::Display,
        oracle: impl Fn(u64, u64) -> bool + 'static,
    ) -> Self {
        let bit = move |a, b, _| Want::Bits(oracle(a, b).into());
        Self::new(format!("select(0u, 1u, {expression})"), Ty::U32, bit)
    }
}

/// Lanes of a workgroup, workgroups of a launch, and values of each operand.
const N: u32 = 32;

/// The kind of the operands.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// Both differ between invocations.
    Varying,
    /// The first is the same for a workgroup.
    UniformFirst,
    /// The second is the same for a workgroup.
    UniformSecond,
    /// Both are the same for a workgroup.
    Uniform,
    /// Both are affine in the invocation's index.
    Affine,
}

const SOURCES: [Source; 5] =
    [Source::Varying, Source::UniformFirst, Source::UniformSecond, Source::Uniform, Source::Affine];

impl Source {
    /// Statements that define the operands.
    fn prelude(self, ty: &str) -> String {
        let [i, j] = match self {
            Self::Varying => ["lane", "(lane + group.x) % 32u"],
            Self::UniformFirst => ["group.x", "lane"],
            Self::UniformSecond => ["lane", "group.x"],
            Self::Uniform => ["group.x", "(group.x * 7u + 3u) % 32u"],
            Self::Affine => {
                return format!(
                    "let a = {ty}(lane * 3u + group.x); let b = {ty}(group.x + 40u - lane);
                    let s = third[lane]; let unused = first[0]; let unused_too = second[0];"
                );
            }
        };
        format!("let a = first[{i}]; let b = second[{j}]; let s = third[{j}];")
    }

    /// The same on the host.
    fn operands(self, operands: &Operands, lane: u32, group: u32) -> (u64, u64, u32) {
        let (i, j) = match self {
            Self::Varying => (lane, (lane + group) % N),
            Self::UniformFirst => (group, lane),
            Self::UniformSecond => (lane, group),
            Self::Uniform => (group, (group * 7 + 3) % N),
            Self::Affine => {
                let ty = operands.ty;
                let s = operands.third[lane as usize];
                return (ty.whole(lane * 3 + group), ty.whole(group + 40 - lane), s);
            }
        };
        let (i, j) = (i as usize, j as usize);
        (operands.first[i], operands.second[j], operands.third[j])
    }
}

/// The operand values, 32 of each: of a type, and of `u32`.
pub struct Operands {
    pub ty: Ty,
    pub first: Vec<u64>,
    pub second: Vec<u64>,
    pub third: Vec<u32>,
}

/// The value of a variable in inactive invocations.
const UNTOUCHED: u32 = 7;

/// Evaluates each expression with all kinds of operands on each device that supports the types.
pub fn check(operands: &Operands, cases: &[Case]) {
    on_each_device(|gpu| check_on(gpu, operands, cases));
}

/// As [`check`], on one device.
pub fn check_on(gpu: &Device, operands: &Operands, cases: &[Case]) {
    for result in NUMBERS {
        let left_out = |case: &Case| is_left_out(gpu, &operands.ty.name(), &case.expression);
        let cases = cases.iter().filter(|case| case.result == result && !left_out(case));
        let cases: Vec<&Case> = cases.collect();
        let features = operands.ty.feature() | result.feature();
        if cases.is_empty() {
            continue;
        }
        if !gpu.info().features.contains(features) {
            let ty = operands.ty.name();
            eprintln!("skipped: {ty} to {}: {} has no {features}", result.name(), gpu.name());
            continue;
        }
        for source in SOURCES {
            for masked in [false, true] {
                check_way(gpu, operands, &cases, source, masked);
            }
        }
    }
}

/// Whether an invocation is active.
fn takes_part(lane: u32, group: u32) -> bool {
    (lane ^ group) % 3 != 1
}

fn check_way(gpu: &Device, operands: &Operands, cases: &[&Case], source: Source, masked: bool) {
    let result = cases[0].result;
    let source_text = kernel(operands.ty, result, cases, source, masked);
    let len = (N * N) as usize * cases.len();
    let kernel = match gpu.compile(&source_text) {
        Ok(kernel) => kernel,
        Err(error) if is_beyond(&error, [operands.ty, result]) => {
            return check_apart(gpu, operands, cases, source, masked);
        }
        Err(error) => panic!("{error}\n{source_text}"),
    };
    let out = run(gpu, &kernel, operands, len * result.bits() as usize / 8);
    let got = unpack(result, &out, len);
    for (index, got) in (0..).zip(got.chunks(cases.len())) {
        let (lane, group) = (index % N, index / N);
        let (a, b, s) = source.operands(operands, lane, group);
        for (nth, (case, got)) in cases.iter().zip(got).enumerate() {
            let want = if masked && !takes_part(lane, group) {
                untouched(result, nth)
            } else {
                (case.oracle)(a, b, s)
            };
            assert!(
                is_right(result, *got, want),
                "{} ({}) of {a:#x}, {b:#x}, {s:#x} is {got:#x} ({:e}), not {want:x?}: {source:?}, \
                 masked {masked}, lane {lane}, group {group}",
                case.expression,
                operands.ty.name(),
                result.float(*got)
            );
        }
    }
}

/// Whether a device's compiler does not support an operation on extension types.
fn is_beyond(error: &GpuError, types: [Ty; 2]) -> bool {
    let standard = [Ty::I32, Ty::U32, Ty::F16, Ty::F32];
    let lacks = error.to_string().contains("the shader compiler failed");
    lacks && types.iter().any(|ty| !standard.contains(ty))
}

/// Compiles each case in a kernel of its own; prints those that the compiler does not support.
fn check_apart(gpu: &Device, operands: &Operands, cases: &[&Case], source: Source, masked: bool) {
    if let [case] = cases {
        let (ty, device) = (operands.ty.name(), gpu.name());
        eprintln!("skipped: {} of {ty}: {device}'s compiler lacks it", case.expression);
        return;
    }
    cases.iter().for_each(|case| check_way(gpu, operands, &[case], source, masked));
}

/// The expected result of inactive invocations: the buffer's or the variable's initial value.
fn untouched(result: Ty, nth: usize) -> Want {
    let bits = if nth.is_multiple_of(2) { result.wrap(-1) } else { result.whole(UNTOUCHED) };
    Want::Bits(bits)
}

fn is_right(ty: Ty, got: u64, want: Want) -> bool {
    match want {
        Want::Bits(bits) => got == bits,
        Want::Number(number) => ty.float(got) == number,
        Want::Near(number, ulps) => (ty.float(got) - number).abs() <= ulps * ty.ulp(number),
        Want::Any => true,
    }
}

fn kernel(ty: Ty, result: Ty, cases: &[&Case], source: Source, masked: bool) -> String {
    let name = ty.name();
    let mut text = format!(
        "{}
        @group(0) @binding(0) var<storage, read> first: array<{name}>;
        @group(0) @binding(1) var<storage, read> second: array<{name}>;
        @group(0) @binding(2) var<storage, read> third: array<u32>;
        @group(0) @binding(3) var<storage, read_write> out: array<{}>;

        @compute @workgroup_size(32)
        fn main(
            @builtin(local_invocation_index) lane: u32,
            @builtin(workgroup_id) group: vec3<u32>,
        ) {{
            let base = (group.x * 32u + lane) * {}u;
            let takes_part = (lane ^ group.x) % 3u != 1u;
            {}\n",
        directives(&[ty, result]),
        result.name(),
        cases.len(),
        source.prelude(&name)
    );
    for (nth, case) in cases.iter().enumerate() {
        let Case { expression, .. } = case;
        let line = match (masked, nth % 2) {
            (false, _) => format!("out[base + {nth}u] = {expression};"),
            (true, 0) => format!("if takes_part {{ out[base + {nth}u] = {expression}; }}"),
            (true, _) => format!(
                "var v{nth} = {}({UNTOUCHED}); if takes_part {{ v{nth} = {expression}; }}
                out[base + {nth}u] = v{nth};",
                result.name()
            ),
        };
        writeln!(text, "            {line}").expect("a string");
    }
    text + "        }\n"
}

/// The `enable` directives of types.
pub fn directives(types: &[Ty]) -> String {
    let mut text = String::new();
    if types.contains(&Ty::F16) {
        text += "enable f16;";
    }
    if types.iter().any(|ty| matches!(ty, Ty::I16 | Ty::U16)) {
        text += "enable wgpu_int16;";
    }
    text
}

/// Values as stored in a buffer.
pub fn pack(ty: Ty, values: &[u64]) -> Vec<u32> {
    let size = ty.bits() as usize / 8;
    let mut bytes: Vec<u8> =
        values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(size)).collect();
    bytes.resize(bytes.len().next_multiple_of(4), 0xff);
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks(4).map(word).collect()
}

/// Values loaded from a buffer.
pub fn unpack(ty: Ty, words: &[u32], len: usize) -> Vec<u64> {
    let size = ty.bits() as usize / 8;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let value =
        |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    bytes.chunks(size).take(len).map(value).collect()
}

fn run(gpu: &Device, kernel: &Kernel, operands: &Operands, bytes: usize) -> Vec<u32> {
    let Operands { ty, first, second, third } = operands;
    let inputs = [pack(*ty, first), pack(*ty, second), third.clone()];
    let inputs: Vec<_> = inputs.iter().map(|input| upload_words(gpu, input)).collect();
    let out = upload_words(gpu, &vec![u32::MAX; bytes.div_ceil(4)]);
    let mut bindings: Vec<&dyn Binding> = inputs.iter().map(|b| b as &dyn Binding).collect();
    bindings.push(&out);
    succeed(gpu.run(kernel, &bindings, Launch::workgroups([N, 1, 1])));
    download_words(&out)
}
