//! Atomic operations on every type, in storage buffers and in workgroup memory: returned old values
//! and final values.

use std::fmt::Write as _;

use scry_gpu::{DeviceInfo, Features, Launch};

use crate::case::{Case, Data, ExpectedValue};
use crate::check::ensure_eq;
use crate::random::RandomWords;
use crate::ty::Ty;

/// Number of invocations, in one workgroup.
const N: usize = 64;

/// The invocation whose operand is used by all with [`Participation::SameOperand`].
const SHARED_OPERAND: usize = 5;

/// A WGSL function and its reference, `(old, operand) -> new`.
type Op = (&'static str, fn(i128, i128) -> i128);

const OPS: [Op; 8] = [
    ("atomicAdd", |old, operand| old + operand),
    ("atomicSub", |old, operand| old - operand),
    ("atomicMin", |old, operand| old.min(operand)),
    ("atomicMax", |old, operand| old.max(operand)),
    ("atomicAnd", |old, operand| old & operand),
    ("atomicOr", |old, operand| old | operand),
    ("atomicXor", |old, operand| old ^ operand),
    ("atomicExchange", |_, operand| operand),
];

fn features(ty: Ty) -> Features {
    match ty.bits() {
        64 => Features::I64 | Features::I64_ATOMICS,
        _ => Features::empty(),
    }
}

const TYPES: [Ty; 4] = [Ty::I32, Ty::U32, Ty::I64, Ty::U64];

fn values(ty: Ty, seed: u32) -> Vec<u64> {
    // Up to 64 random bits: the lower half equals the upper half before the shift.
    let value = |bits: u32| ty.wrap((i128::from(bits) << 32 | i128::from(bits)) >> (bits % 33));
    RandomWords(seed).take(N).map(value).collect()
}

/// The address space of the atomics.
#[derive(Clone, Copy, Debug)]
enum AddressSpace {
    Storage,
    Workgroup,
}

/// Which invocations participate, and with which operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Participation {
    /// All, each with its own operand.
    All,
    /// All, with the operand of invocation [`SHARED_OPERAND`].
    SameOperand,
    /// Two of three, each with its own operand.
    Masked,
}

impl Participation {
    fn is_active(self, i: usize) -> bool {
        self != Self::Masked || i % 3 != 1
    }

    fn operand(self, operands: &[u64], i: usize) -> u64 {
        operands[if self == Self::SameOperand { SHARED_OPERAND } else { i }]
    }
}

/// Returns a kernel in which each invocation performs every operation, each on its own atomic.
fn kernel(ty: Ty, space: AddressSpace, participation: Participation, ops: &[&str]) -> String {
    let name = ty.name();
    let columns = ops.len();
    let (target, start, end) = match space {
        AddressSpace::Storage => ("buffer", "", ""),
        AddressSpace::Workgroup => (
            "workgroup_data",
            "for (var k = 0u; k < COLUMNS; k++) {
                atomicStore(&workgroup_data[i * COLUMNS + k], atomicLoad(&buffer[i * COLUMNS + k]));
            }
            workgroupBarrier();",
            // Copies another invocation's atomics, so that the barrier matters.
            "workgroupBarrier();
            for (var k = 0u; k < COLUMNS; k++) {
                let at = (63u - i) * COLUMNS + k;
                atomicStore(&buffer[at], atomicLoad(&workgroup_data[at]));
            }",
        ),
    };
    let operand = match participation {
        Participation::SameOperand => format!("{SHARED_OPERAND}u"),
        _ => "i".to_owned(),
    };
    let condition = if participation == Participation::Masked { "i % 3u != 1u" } else { "true" };
    let mut text = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>>;
        @group(0) @binding(2) var<storage, read_write> old: array<{name}>;
        var<workgroup> workgroup_data: array<atomic<{name}>, {columns} * 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            let operand = operands[{operand}];
            {start}
            if {condition} {{\n"
    );
    for (k, op) in ops.iter().enumerate() {
        writeln!(text, "old[i * COLUMNS + {k}u] = {op}(&{target}[i * COLUMNS + {k}u], operand);")
            .expect("writing to a String cannot fail");
    }
    write!(text, "}}\n{end}\n}}").expect("writing to a String cannot fail");
    text.replace("COLUMNS", &format!("{columns}u"))
}

fn case(ty: Ty, space: AddressSpace, participation: Participation) -> Case {
    let columns = OPS.len();
    let (operands, initial) = (values(ty, 50), values(ty, 51));
    let cells: Vec<u64> = initial.iter().flat_map(|value| vec![*value; columns]).collect();
    let source = kernel(ty, space, participation, &OPS.map(|(name, _)| name));
    Case::new(format!("{ty:?}, {space:?}, {participation:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &cells))
        .buffer(Data::values(ty, &vec![ty.wrap(77); N * columns]))
        .one_workgroup()
        .skipped_without(features(ty))
        .expect(move |out| {
            let final_values = out.values(1, ty, N * columns);
            let old_values = out.values(2, ty, N * columns);
            for (i, initial) in initial.iter().enumerate() {
                let operand = ty.integer(participation.operand(&operands, i));
                for (k, (name, op)) in OPS.iter().enumerate() {
                    let at = i * columns + k;
                    let (want_old, want) = match participation.is_active(i) {
                        true => (*initial, ty.wrap(op(ty.integer(*initial), operand))),
                        false => (ty.wrap(77), *initial),
                    };
                    ensure_eq!(old_values[at], want_old, "old value of {name}, invocation {i}");
                    ensure_eq!(final_values[at], want, "new value of {name}, invocation {i}");
                }
            }
            Ok(())
        })
}

fn every_operation(space: AddressSpace) -> Vec<Case> {
    let participations = [Participation::All, Participation::SameOperand, Participation::Masked];
    TYPES
        .into_iter()
        .flat_map(|ty| participations.map(|participation| case(ty, space, participation)))
        .collect()
}

pub(crate) fn every_operation_in_buffers(_: &DeviceInfo) -> Vec<Case> {
    every_operation(AddressSpace::Storage)
}

pub(crate) fn every_operation_in_workgroup_memory(_: &DeviceInfo) -> Vec<Case> {
    every_operation(AddressSpace::Workgroup)
}

/// All invocations perform every operation on the same atomics, one for each operation.
pub(crate) fn every_operation_on_one_cell(_: &DeviceInfo) -> Vec<Case> {
    let spaces = [AddressSpace::Storage, AddressSpace::Workgroup];
    TYPES.into_iter().flat_map(|ty| spaces.map(|space| one_cell(ty, space))).collect()
}

fn one_cell(ty: Ty, space: AddressSpace) -> Case {
    let name = ty.name();
    let target = match space {
        AddressSpace::Storage => "buffer",
        AddressSpace::Workgroup => "workgroup_data",
    };
    // Without atomicExchange, whose final value depends on the order of the invocations.
    let ops = &OPS[..OPS.len() - 1];
    let mut body = String::new();
    for (k, (op, _)) in ops.iter().enumerate() {
        writeln!(body, "{op}(&{target}[{k}], operands[i]);")
            .expect("writing to a String cannot fail");
    }
    let source = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>, 7>;
        var<workgroup> workgroup_data: array<atomic<{name}>, 7>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            if i < 7u {{ atomicStore(&workgroup_data[i], atomicLoad(&buffer[i])); }}
            workgroupBarrier();
            {body}
            workgroupBarrier();
            if i < 7u && {} {{ atomicStore(&buffer[i], atomicLoad(&workgroup_data[i])); }}
        }}",
        matches!(space, AddressSpace::Workgroup)
    );
    let (operands, initial) = (values(ty, 52), values(ty, 53)[..7].to_vec());
    let want = |(k, (_, reference)): (usize, &Op)| {
        let fold =
            |old: u64, operand: &u64| ty.wrap(reference(ty.integer(old), ty.integer(*operand)));
        operands.iter().fold(initial[k], fold)
    };
    let want: Vec<u64> = ops.iter().enumerate().map(want).collect();
    Case::new(format!("{ty:?}, {space:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &initial))
        .one_workgroup()
        .skipped_without(features(ty))
        .expect_values(1, ty, &want)
}

/// Compare-exchange with equal and with different values.
pub(crate) fn compare_exchanges(_: &DeviceInfo) -> Vec<Case> {
    let spaces =
        [(AddressSpace::Storage, "buffer[i]"), (AddressSpace::Workgroup, "workgroup_data[i]")];
    let cases = |ty| spaces.map(|(space, cell)| compare_exchange(ty, space, cell));
    TYPES.into_iter().flat_map(cases).collect()
}

fn compare_exchange(ty: Ty, space: AddressSpace, cell: &str) -> Case {
    let name = ty.name();
    let source = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>>;
        @group(0) @binding(2) var<storage, read_write> old: array<{name}>;
        var<workgroup> workgroup_data: array<atomic<{name}>, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            atomicStore(&workgroup_data[i], atomicLoad(&buffer[i]));
            // Even invocations compare with the current value, odd ones with another one.
            let compare = operands[64u + i];
            var old_value = compare;
            var exchanged = false;
            if i % 5u != 4u {{
                for (var attempt = 0; attempt < 100; attempt++) {{
                    let result = atomicCompareExchangeWeak(&{cell}, compare, operands[i]);
                    old_value = result.old_value;
                    exchanged = result.exchanged;
                    // Retries a weak exchange that failed spuriously.
                    if exchanged || old_value != compare {{ break; }}
                }}
            }}
            old[i] = old_value;
            old[64u + i] = {name}(exchanged);
            if {} {{ atomicStore(&buffer[i], atomicLoad(&workgroup_data[i])); }}
        }}",
        matches!(space, AddressSpace::Workgroup)
    );
    let (new, initial) = (values(ty, 54), values(ty, 55));
    let is_equal = |i: usize| i.is_multiple_of(2);
    let compare = (0..N).map(|i| if is_equal(i) { initial[i] } else { initial[i] ^ 1 });
    let operands: Vec<u64> = new.iter().copied().chain(compare).collect();
    let exchanged = |i: usize| i % 5 != 4 && is_equal(i);
    let final_values: Vec<u64> =
        (0..N).map(|i| if exchanged(i) { new[i] } else { initial[i] }).collect();
    let old_values = (0..N).map(|i| if i % 5 != 4 { initial[i] } else { operands[N + i] });
    let old: Vec<u64> = old_values.chain((0..N).map(|i| u64::from(exchanged(i)))).collect();
    Case::new(format!("{ty:?}, {space:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &initial))
        .buffer(Data::values(ty, &[0; N * 2]))
        .one_workgroup()
        .skipped_without(features(ty))
        .expect_values(1, ty, &final_values)
        .expect_values(2, ty, &old)
}

pub(crate) fn floats_in_buffers(_: &DeviceInfo) -> Case {
    let source = "
        @group(0) @binding(0) var<storage, read> operands: array<f32>;
        @group(0) @binding(1) var<storage, read_write> cells: array<atomic<f32>>;
        @group(0) @binding(2) var<storage, read_write> old: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            let operand = operands[i];
            if i % 3u != 1u {
                old[i * 4u] = atomicAdd(&cells[i * 4u], operand);
                old[i * 4u + 1u] = atomicSub(&cells[i * 4u + 1u], operand);
                old[i * 4u + 2u] = atomicExchange(&cells[i * 4u + 2u], operand);
                old[i * 4u + 3u] = atomicLoad(&cells[i * 4u + 3u]);
                atomicStore(&cells[i * 4u + 3u], operand + 1.0);
            }
        }";
    let operands: Vec<f32> = (0..N).map(|i| i as f32 * 0.25 - 7.0).collect();
    let initial: Vec<f32> = (0..N * 4).map(|i| i as f32 * 0.5 + 3.0).collect();
    let row = |i: usize| {
        let (old, operand) = (&initial[i * 4..i * 4 + 4], operands[i]);
        match i % 3 {
            1 => (old.to_vec(), vec![-1.0; 4]),
            _ => (vec![old[0] + operand, old[1] - operand, operand, operand + 1.0], old.into()),
        }
    };
    let rows: Vec<(Vec<f32>, Vec<f32>)> = (0..N).map(row).collect();
    let numbers =
        |row: &[f32]| row.iter().map(|x| ExpectedValue::Number((*x).into())).collect::<Vec<_>>();
    let final_values = rows.iter().flat_map(|row| numbers(&row.0)).collect();
    let old_values = rows.iter().flat_map(|row| numbers(&row.1)).collect();
    Case::new("", source)
        .buffer(Data::floats(&operands))
        .buffer(Data::floats(&initial))
        .buffer(Data::floats(&[-1.0; N * 4]))
        .one_workgroup()
        .skipped_without(Features::F32_ATOMICS)
        .expect_approx(1, Ty::F32, final_values, |at| format!("cell {at}"))
        .expect_approx(2, Ty::F32, old_values, |at| format!("old value {at}"))
}

pub(crate) fn atomics_keep_neighbouring_words(_: &DeviceInfo) -> Case {
    let source = "
        struct Cell { before: u32, count: atomic<u32>, after: u32 }
        @group(0) @binding(0) var<storage, read_write> cells: array<Cell, 4>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            atomicAdd(&cells[i % 4u].count, i);
        }";
    let words: Vec<u32> = (100..112).collect();
    let sum = |cell: u32| (0..64).filter(|i| i % 4 == cell).sum::<u32>();
    let want =
        (0..12).map(|at| words[at as usize] + if at % 3 == 1 { sum(at / 3) } else { 0 }).collect();
    Case::new("", source).words(&[&words]).launch(Launch::invocations(64)).expect_words(0, want)
}
