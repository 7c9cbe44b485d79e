//! Atomic operations: each on each type, in buffers and in workgroup memory; their results and the
//! final values.

use std::fmt::Write as _;

use scry_gpu::{DeviceInfo, Features, Launch};

use crate::case::{Case, Data, Want};
use crate::check::ensure_eq;
use crate::random::Words;
use crate::ty::Ty;

const N: usize = 64;

/// An operation: its name, and its new value for the old value and the operand.
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

fn feature(ty: Ty) -> Features {
    match ty.bits() {
        64 => Features::I64 | Features::I64_ATOMICS,
        _ => Features::empty(),
    }
}

const TYPES: [Ty; 4] = [Ty::I32, Ty::U32, Ty::I64, Ty::U64];

fn values(ty: Ty, seed: u32) -> Vec<u64> {
    let word = |word: u32| ty.wrap((i128::from(word) << 32 | i128::from(word)) >> (word % 33));
    Words(seed).take(N).map(word).collect()
}

/// The address space of the cells, with their initialisation and readback.
#[derive(Clone, Copy, Debug)]
enum Place {
    Storage,
    Workgroup,
}

/// Which invocations participate, and with which operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    All,
    SameOperand,
    Masked,
}

impl Way {
    fn takes_part(self, i: usize) -> bool {
        self != Self::Masked || i % 3 != 1
    }

    fn operand(self, operands: &[u64], i: usize) -> u64 {
        operands[if self == Self::SameOperand { 5 } else { i }]
    }
}

/// Each invocation does each operation on a cell of its own.
fn kernel(ty: Ty, place: Place, way: Way, ops: &[&str]) -> String {
    let name = ty.name();
    let columns = ops.len();
    let (shelf, start, end) = match place {
        Place::Storage => ("buffer", "", ""),
        Place::Workgroup => (
            "shelf",
            "for (var k = 0u; k < COLUMNS; k++) {
                atomicStore(&shelf[i * COLUMNS + k], atomicLoad(&buffer[i * COLUMNS + k]));
            }
            workgroupBarrier();",
            "workgroupBarrier();
            for (var k = 0u; k < COLUMNS; k++) {
                let at = (63u - i) * COLUMNS + k;
                atomicStore(&buffer[at], atomicLoad(&shelf[at]));
            }",
        ),
    };
    let operand = if way == Way::SameOperand { "5u" } else { "i" };
    let condition = if way == Way::Masked { "i % 3u != 1u" } else { "true" };
    let mut text = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>>;
        @group(0) @binding(2) var<storage, read_write> old: array<{name}>;
        var<workgroup> shelf: array<atomic<{name}>, {columns} * 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            let operand = operands[{operand}];
            {start}
            if {condition} {{\n"
    );
    for (k, op) in ops.iter().enumerate() {
        writeln!(text, "old[i * COLUMNS + {k}u] = {op}(&{shelf}[i * COLUMNS + {k}u], operand);")
            .expect("a string");
    }
    write!(text, "}}\n{end}\n}}").expect("a string");
    text.replace("COLUMNS", &format!("{columns}u"))
}

fn case(ty: Ty, place: Place, way: Way) -> Case {
    let columns = OPS.len();
    let (operands, start) = (values(ty, 50), values(ty, 51));
    let cells: Vec<u64> = start.iter().flat_map(|value| vec![*value; columns]).collect();
    let source = kernel(ty, place, way, &OPS.map(|(name, _)| name));
    Case::new(format!("{ty:?}, {place:?}, {way:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &cells))
        .buffer(Data::values(ty, &vec![ty.wrap(77); N * columns]))
        .one_workgroup()
        .needs(feature(ty))
        .expect(move |out| {
            let left = out.values(1, ty, N * columns);
            let gave = out.values(2, ty, N * columns);
            for (i, begun) in start.iter().enumerate() {
                let operand = ty.integer(way.operand(&operands, i));
                for (k, (name, op)) in OPS.iter().enumerate() {
                    let at = i * columns + k;
                    let (want_old, want) = match way.takes_part(i) {
                        true => (*begun, ty.wrap(op(ty.integer(*begun), operand))),
                        false => (ty.wrap(77), *begun),
                    };
                    ensure_eq!(gave[at], want_old, "old value of {name}, invocation {i}");
                    ensure_eq!(left[at], want, "new value of {name}, invocation {i}");
                }
            }
            Ok(())
        })
}

fn every_operation(place: Place) -> Vec<Case> {
    let ways = [Way::All, Way::SameOperand, Way::Masked];
    TYPES.into_iter().flat_map(|ty| ways.map(|way| case(ty, place, way))).collect()
}

pub(crate) fn every_operation_in_buffers(_: &DeviceInfo) -> Vec<Case> {
    every_operation(Place::Storage)
}

pub(crate) fn every_operation_in_workgroup_memory(_: &DeviceInfo) -> Vec<Case> {
    every_operation(Place::Workgroup)
}

/// All invocations on the same cell: the final value does not depend on the order.
pub(crate) fn every_operation_on_one_cell(_: &DeviceInfo) -> Vec<Case> {
    let places = [Place::Storage, Place::Workgroup];
    TYPES.into_iter().flat_map(|ty| places.map(|place| one_cell(ty, place))).collect()
}

fn one_cell(ty: Ty, place: Place) -> Case {
    let name = ty.name();
    let shelf = match place {
        Place::Storage => "buffer",
        Place::Workgroup => "shelf",
    };
    // The last one, an exchange, may leave any operand.
    let ops = &OPS[..OPS.len() - 1];
    let mut body = String::new();
    for (k, (op, _)) in ops.iter().enumerate() {
        writeln!(body, "{op}(&{shelf}[{k}], operands[i]);").expect("a string");
    }
    let source = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>, 7>;
        var<workgroup> shelf: array<atomic<{name}>, 7>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            if i < 7u {{ atomicStore(&shelf[i], atomicLoad(&buffer[i])); }}
            workgroupBarrier();
            {body}
            workgroupBarrier();
            if i < 7u && {} {{ atomicStore(&buffer[i], atomicLoad(&shelf[i])); }}
        }}",
        matches!(place, Place::Workgroup)
    );
    let (operands, start) = (values(ty, 52), values(ty, 53)[..7].to_vec());
    let want = |(k, (_, host)): (usize, &Op)| {
        let fold = |old: u64, operand: &u64| ty.wrap(host(ty.integer(old), ty.integer(*operand)));
        operands.iter().fold(start[k], fold)
    };
    let want: Vec<u64> = ops.iter().enumerate().map(want).collect();
    Case::new(format!("{ty:?}, {place:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &start))
        .one_workgroup()
        .needs(feature(ty))
        .expect_values(1, ty, &want)
}

/// Compare-exchange: with equal and with different values.
pub(crate) fn comparing_exchanges(_: &DeviceInfo) -> Vec<Case> {
    let places = [(Place::Storage, "buffer[i]"), (Place::Workgroup, "shelf[i]")];
    let cases = |ty| places.map(|(place, cell)| comparing_exchange(ty, place, cell));
    TYPES.into_iter().flat_map(cases).collect()
}

fn comparing_exchange(ty: Ty, place: Place, cell: &str) -> Case {
    let name = ty.name();
    let source = format!(
        "@group(0) @binding(0) var<storage, read> operands: array<{name}>;
        @group(0) @binding(1) var<storage, read_write> buffer: array<atomic<{name}>>;
        @group(0) @binding(2) var<storage, read_write> old: array<{name}>;
        var<workgroup> shelf: array<atomic<{name}>, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {{
            atomicStore(&shelf[i], atomicLoad(&buffer[i]));
            // Every other invocation compares with what is there.
            let compare = operands[64u + i];
            var seen = compare;
            var exchanged = false;
            if i % 5u != 4u {{
                for (var attempt = 0; attempt < 100; attempt++) {{
                    let result = atomicCompareExchangeWeak(&{cell}, compare, operands[i]);
                    seen = result.old_value;
                    exchanged = result.exchanged;
                    // A weak exchange may fail spuriously: then it is repeated.
                    if exchanged || seen != compare {{ break; }}
                }}
            }}
            old[i] = seen;
            old[64u + i] = {name}(exchanged);
            if {} {{ atomicStore(&buffer[i], atomicLoad(&shelf[i])); }}
        }}",
        matches!(place, Place::Workgroup)
    );
    let (new, start) = (values(ty, 54), values(ty, 55));
    let is_equal = |i: usize| i.is_multiple_of(2);
    let compare = (0..N).map(|i| if is_equal(i) { start[i] } else { start[i] ^ 1 });
    let operands: Vec<u64> = new.iter().copied().chain(compare).collect();
    let exchanged = |i: usize| i % 5 != 4 && is_equal(i);
    let left: Vec<u64> = (0..N).map(|i| if exchanged(i) { new[i] } else { start[i] }).collect();
    let seen = (0..N).map(|i| if i % 5 != 4 { start[i] } else { operands[N + i] });
    let old: Vec<u64> = seen.chain((0..N).map(|i| u64::from(exchanged(i)))).collect();
    Case::new(format!("{ty:?}, {place:?}"), source)
        .buffer(Data::values(ty, &operands))
        .buffer(Data::values(ty, &start))
        .buffer(Data::values(ty, &[0; N * 2]))
        .one_workgroup()
        .needs(feature(ty))
        .expect_values(1, ty, &left)
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
    let start: Vec<f32> = (0..N * 4).map(|i| i as f32 * 0.5 + 3.0).collect();
    let row = |i: usize| {
        let (was, operand) = (&start[i * 4..i * 4 + 4], operands[i]);
        match i % 3 {
            1 => (was.to_vec(), vec![-1.0; 4]),
            _ => (vec![was[0] + operand, was[1] - operand, operand, operand + 1.0], was.into()),
        }
    };
    let rows: Vec<(Vec<f32>, Vec<f32>)> = (0..N).map(row).collect();
    let numbers = |row: &[f32]| row.iter().map(|x| Want::Number((*x).into())).collect::<Vec<_>>();
    let left = rows.iter().flat_map(|row| numbers(&row.0)).collect();
    let gave = rows.iter().flat_map(|row| numbers(&row.1)).collect();
    Case::new("", source)
        .buffer(Data::floats(&operands))
        .buffer(Data::floats(&start))
        .buffer(Data::floats(&[-1.0; N * 4]))
        .one_workgroup()
        .needs(Features::F32_ATOMICS)
        .expect_wants(1, Ty::F32, left, |at| format!("cell {at}"))
        .expect_wants(2, Ty::F32, gave, |at| format!("old value {at}"))
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
