//! Cases that evaluate expressions over scalars of any type. The operands are varying, uniform over
//! a workgroup, or affine in the invocation's index; control flow is uniform or divergent.

use std::fmt::Write as _;
use std::ops::Range;
use std::rc::Rc;

use scry_gpu::{BackendKind, DeviceInfo, Features, Launch};

use crate::Cases;
use crate::case::{Case, Data, ExpectedValue, OnUnsupportedOp};
use crate::ty::{NUMBERS, Ty, directives, pack};

/// Computes the expected result of an expression over `a`, `b` (of the type under test) and `s` (a
/// `u32`), from their bits.
pub type Oracle = Box<dyn Fn(u64, u64, u32) -> ExpectedValue>;

/// An expression, its type, and its expected result.
pub struct Row {
    pub expression: String,
    pub result: Ty,
    pub oracle: Oracle,
}

impl Row {
    pub fn new(
        expression: impl Into<String>,
        result: Ty,
        oracle: impl Fn(u64, u64, u32) -> ExpectedValue + 'static,
    ) -> Self {
        Self { expression: expression.into(), result, oracle: Box::new(oracle) }
    }

    /// Creates a row for a condition, whose result is the `u32` 1 if it is true, else 0.
    pub fn condition(
        expression: impl std::fmt::Display,
        oracle: impl Fn(u64, u64) -> bool + 'static,
    ) -> Self {
        let bit = move |a, b, _| ExpectedValue::Bits(oracle(a, b).into());
        Self::new(format!("select(0u, 1u, {expression})"), Ty::U32, bit)
    }
}

/// Returns whether an expression is skipped on a device: `frexp` of 16- and 64-bit floats with
/// naga's SPIR-V writer (`SCRY_SPIRV=naga`), which writes an exponent type that SPIR-V does not
/// allow, and of 16-bit floats on devices without the 16-bit integers that naga types their
/// exponents as.
pub fn is_skipped(gpu: &DeviceInfo, ty: &str, expression: &str) -> bool {
    let by_naga = || std::env::var_os("SCRY_SPIRV").is_some_and(|writer| writer == "naga");
    let is_invalid = || gpu.backend == BackendKind::Vulkan && ty != "f32" && by_naga();
    let lacks_exponent = ty == "f16" && !gpu.features.contains(Features::I16);
    expression.contains("frexp(") && (lacks_exponent || is_invalid())
}

/// Returns a skipped case for an expression that [`is_skipped`].
pub fn skipped_case(ty: &str, expression: &str) -> Case {
    Case::skipped(format!("{expression} of {ty}"), "naga's type of its exponent is invalid here")
}

/// Number of invocations in a workgroup, of workgroups in a launch, and of values per operand.
const N: u32 = 32;

/// How the operands `a` and `b` depend on the invocation.
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
    /// Returns the WGSL statements that define `a`, `b` and `s`.
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

    /// Returns the operands of an invocation, computed on the host.
    fn operands(self, operands: &Operands, lane: u32, group: u32) -> (u64, u64, u32) {
        let (i, j) = match self {
            Self::Varying => (lane, (lane + group) % N),
            Self::UniformFirst => (group, lane),
            Self::UniformSecond => (lane, group),
            Self::Uniform => (group, (group * 7 + 3) % N),
            Self::Affine => {
                let ty = operands.ty;
                let s = operands.third[lane as usize];
                return (ty.integer_bits(lane * 3 + group), ty.integer_bits(group + 40 - lane), s);
            }
        };
        let (i, j) = (i as usize, j as usize);
        (operands.first[i], operands.second[j], operands.third[j])
    }
}

/// The values from which `a` (first), `b` (second) and `s` (third) are chosen: 32 of each.
#[derive(Clone)]
pub struct Operands {
    pub ty: Ty,
    pub first: Vec<u64>,
    pub second: Vec<u64>,
    pub third: Vec<u32>,
}

/// The value of a variable in inactive invocations.
const INITIAL: u32 = 7;

/// Returns cases that evaluate each expression with all kinds of operands, skipped on devices that
/// do not support the types.
pub fn expressions(gpu: &DeviceInfo, operands: Operands, rows: Vec<Row>) -> Cases {
    let name = operands.ty.name();
    let (skipped, rows): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| is_skipped(gpu, &name, &row.expression));
    let skipped = skipped.into_iter().map(move |row| skipped_case(&name, &row.expression));
    let operands = Rc::new(operands);
    let mut groups: Vec<Vec<Row>> = NUMBERS.iter().map(|_| Vec::new()).collect();
    for row in rows {
        let group = NUMBERS.iter().position(|ty| *ty == row.result).expect("NUMBERS has all types");
        groups[group].push(row);
    }
    let groups = groups.into_iter().filter(|rows| !rows.is_empty()).map(Rc::new);
    let cases = groups.flat_map(move |rows| {
        let operands = Rc::clone(&operands);
        let variants = SOURCES.into_iter().flat_map(|source| [(source, false), (source, true)]);
        variants.map(move |variant| case(&operands, &rows, variant, 0..rows.len()))
    });
    Cases::new(skipped.chain(cases))
}

/// Returns the concatenated cases of each type.
pub fn for_types(
    gpu: &DeviceInfo,
    types: &'static [Ty],
    cases: impl Fn(&DeviceInfo, Ty) -> Cases + 'static,
) -> Cases {
    let gpu = gpu.clone();
    Cases::new(types.iter().flat_map(move |ty| cases(&gpu, *ty)))
}

/// Returns whether an invocation is active in a masked case, as `is_active` in the kernel.
fn is_active(lane: u32, group: u32) -> bool {
    (lane ^ group) % 3 != 1
}

/// Returns a case that evaluates the rows of `range` in one kernel.
fn case(
    operands: &Rc<Operands>,
    all: &Rc<Vec<Row>>,
    (source, masked): (Source, bool),
    range: Range<usize>,
) -> Case {
    let (ty, rows): (Ty, Vec<&Row>) = (operands.ty, all[range.clone()].iter().collect());
    let result = rows[0].result;
    let len = (N * N) as usize * rows.len();
    let bytes = len * result.bits() as usize / 8;
    let single = if let [row] = &rows[..] { &row.expression } else { "" };
    let name = format!("{single} {} to {}, {source:?}, masked {masked}", ty.name(), result.name());
    let mut case = Case::new(name.trim(), kernel(ty, result, &rows, source, masked))
        .words(&[&pack(ty, &operands.first), &pack(ty, &operands.second), &operands.third])
        .buffer(Data::words(&vec![u32::MAX; bytes.div_ceil(4)]))
        .launch(Launch::workgroups([N, 1, 1]))
        .skipped_without(ty.feature() | result.feature())
        .expect_approx(3, result, expected(operands, &rows, source, masked), {
            let (operands, all, first) = (Rc::clone(operands), Rc::clone(all), range.start);
            let columns = rows.len();
            move |at| {
                let (index, row) = ((at / columns) as u32, &all[first + at % columns]);
                let (lane, group) = (index % N, index / N);
                let (a, b, s) = source.operands(&operands, lane, group);
                format!("{} of {a:#x}, {b:#x}, {s:#x} (lane {lane}, group {group})", row.expression)
            }
        });
    // A driver's compiler need not support all operations on types that WGSL does not have.
    if [ty, result].iter().any(|ty| !STANDARD.contains(ty)) {
        let (operands, all) = (Rc::clone(operands), Rc::clone(all));
        case.on_unsupported_op = match range.len() {
            1 => OnUnsupportedOp::Skip,
            _ => OnUnsupportedOp::Split(Box::new(move || {
                let single = |i| self::case(&operands, &all, (source, masked), i..i + 1);
                range.clone().map(single).collect()
            })),
        };
    }
    case
}

/// Types of WGSL itself, whose operations every compiler must support.
const STANDARD: [Ty; 4] = [Ty::I32, Ty::U32, Ty::F16, Ty::F32];

/// Returns the expected results, by invocation and expression.
fn expected(
    operands: &Operands,
    rows: &[&Row],
    source: Source,
    masked: bool,
) -> Vec<ExpectedValue> {
    let wants_of = |index: u32| {
        let (lane, group) = (index % N, index / N);
        let (a, b, s) = source.operands(operands, lane, group);
        rows.iter().enumerate().map(move |(i, row)| match masked && !is_active(lane, group) {
            true => inactive_result(row.result, i),
            false => (row.oracle)(a, b, s),
        })
    };
    (0..N * N).flat_map(wants_of).collect()
}

/// Returns the expected result of inactive invocations: the buffer's initial value for rows with an
/// even index, the variable's for the others (see [`kernel`]).
fn inactive_result(result: Ty, row: usize) -> ExpectedValue {
    let bits = if row.is_multiple_of(2) { result.wrap(-1) } else { result.integer_bits(INITIAL) };
    ExpectedValue::Bits(bits)
}

fn kernel(ty: Ty, result: Ty, rows: &[&Row], source: Source, masked: bool) -> String {
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
            let is_active = (lane ^ group.x) % 3u != 1u;
            {}\n",
        directives(&[ty, result]),
        result.name(),
        rows.len(),
        source.prelude(&name)
    );
    for (i, row) in rows.iter().enumerate() {
        let Row { expression, .. } = row;
        let line = match (masked, i % 2) {
            (false, _) => format!("out[base + {i}u] = {expression};"),
            (true, 0) => format!("if is_active {{ out[base + {i}u] = {expression}; }}"),
            (true, _) => format!(
                "var v{i} = {}({INITIAL}); if is_active {{ v{i} = {expression}; }}
                out[base + {i}u] = v{i};",
                result.name()
            ),
        };
        writeln!(text, "            {line}").expect("writing to a String cannot fail");
    }
    text + "        }\n"
}
