//! Atomic operations: each on each type, in buffers and in workgroup memory; their results and the
//! final values.

use std::fmt::Write as _;

use scry_gpu::{Device, Features, Launch};

use crate::harness::{Words, download_words, on_each_device, one_workgroup, succeed, upload_words};
use crate::typed::{Ty, pack, unpack};

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

fn for_each_type(test: impl Fn(&Device, Ty)) {
    on_each_device(|gpu| {
        for ty in [Ty::I32, Ty::U32, Ty::I64, Ty::U64] {
            if gpu.info().features.contains(feature(ty)) {
                test(gpu, ty);
            } else {
                eprintln!("skipped: atomic {}: {} has no {}", ty.name(), gpu.name(), feature(ty));
            }
        }
    });
}

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

fn check(gpu: &Device, ty: Ty, place: Place, way: Way) {
    let columns = OPS.len();
    let (operands, start) = (values(ty, 50), values(ty, 51));
    let cells: Vec<u64> = start.iter().flat_map(|value| vec![*value; columns]).collect();
    let source = kernel(ty, place, way, &OPS.map(|(name, _)| name));
    let input = upload_words(gpu, &pack(ty, &operands));
    let buffer = upload_words(gpu, &pack(ty, &cells));
    let old = upload_words(gpu, &pack(ty, &vec![ty.wrap(77); N * columns]));
    let kernel = succeed(gpu.compile(&source));
    succeed(gpu.run(&kernel, &[&input, &buffer, &old], one_workgroup()));
    let left = unpack(ty, &download_words(&buffer), N * columns);
    let gave = unpack(ty, &download_words(&old), N * columns);
    for (i, begun) in start.into_iter().enumerate() {
        let operand = ty.integer(way.operand(&operands, i));
        for (k, (name, op)) in OPS.iter().enumerate() {
            let at = i * columns + k;
            let (want_old, want) = match way.takes_part(i) {
                true => (begun, ty.wrap(op(ty.integer(begun), operand))),
                false => (ty.wrap(77), begun),
            };
            let what = format!("{name} of {ty:?}, {place:?}, {way:?}, invocation {i}");
            assert_eq!(gave[at], want_old, "old value: {what}");
            assert_eq!(left[at], want, "new value: {what}");
        }
    }
}

#[test]
fn every_operation_in_buffers() {
    for_each_type(|gpu, ty| {
        [Way::All, Way::SameOperand, Way::Masked]
            .into_iter()
            .for_each(|way| check(gpu, ty, Place::Storage, way));
    });
}

#[test]
fn every_operation_in_workgroup_memory() {
    for_each_type(|gpu, ty| {
        [Way::All, Way::SameOperand, Way::Masked]
            .into_iter()
            .for_each(|way| check(gpu, ty, Place::Workgroup, way));
    });
}

/// All invocations on the same cell: the final value does not depend on the order.
#[test]
fn every_operation_on_one_cell() {
    for_each_type(|gpu, ty| {
        for place in [Place::Storage, Place::Workgroup] {
            one_cell(gpu, ty, place);
        }
    });
}

fn one_cell(gpu: &Device, ty: Ty, place: Place) {
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
    let input = upload_words(gpu, &pack(ty, &operands));
    let buffer = upload_words(gpu, &pack(ty, &start));
    let kernel = succeed(gpu.compile(&source));
    succeed(gpu.run(&kernel, &[&input, &buffer], one_workgroup()));
    let left = unpack(ty, &download_words(&buffer), 7);
    for (k, (op, host)) in ops.iter().enumerate() {
        let fold = |old: u64, operand: &u64| ty.wrap(host(ty.integer(old), ty.integer(*operand)));
        let want = operands.iter().fold(start[k], fold);
        assert_eq!(left[k], want, "{op} of {ty:?}, {place:?}");
    }
}

/// Compare-exchange: with equal and with different values.
#[test]
fn comparing_exchanges() {
    for_each_type(|gpu, ty| {
        for (place, cell) in [(Place::Storage, "buffer[i]"), (Place::Workgroup, "shelf[i]")] {
            comparing_exchange(gpu, ty, place, cell);
        }
    });
}

fn comparing_exchange(gpu: &Device, ty: Ty, place: Place, cell: &str) {
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
    let input = upload_words(gpu, &pack(ty, &operands));
    let buffer = upload_words(gpu, &pack(ty, &start));
    let old = upload_words(gpu, &pack(ty, &vec![0; N * 2]));
    let kernel = succeed(gpu.compile(&source));
    succeed(gpu.run(&kernel, &[&input, &buffer, &old], one_workgroup()));
    let left = unpack(ty, &download_words(&buffer), N);
    let gave = unpack(ty, &download_words(&old), N * 2);
    for i in 0..N {
        let tries = i % 5 != 4;
        let what = format!("{ty:?}, {place:?}, invocation {i}");
        let exchanged = tries && is_equal(i);
        assert_eq!(left[i], if exchanged { new[i] } else { start[i] }, "left: {what}");
        assert_eq!(gave[i], if tries { start[i] } else { operands[N + i] }, "old: {what}");
        assert_eq!(gave[N + i], u64::from(exchanged), "exchanged: {what}");
    }
}

#[test]
fn floats_in_buffers() {
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
    on_each_device(|gpu| {
        if !gpu.info().features.contains(Features::F32_ATOMICS) {
            eprintln!("skipped: {} has no {}", gpu.name(), Features::F32_ATOMICS);
            return;
        }
        let operands: Vec<f32> = (0..N).map(|i| i as f32 * 0.25 - 7.0).collect();
        let start: Vec<f32> = (0..N * 4).map(|i| i as f32 * 0.5 + 3.0).collect();
        let input = succeed(gpu.upload(&operands));
        let cells = succeed(gpu.upload(&start));
        let old = succeed(gpu.upload(&vec![-1.0f32; N * 4]));
        let kernel = succeed(gpu.compile(source));
        let launch = Launch::workgroups([1, 1, 1]);
        succeed(gpu.run(&kernel, &[&input, &cells, &old], launch));
        let (left, gave) = (succeed(cells.download()), succeed(old.download()));
        for (i, operand) in operands.into_iter().enumerate() {
            let at = i * 4;
            let was = &start[at..at + 4];
            let (want, want_old) = match i % 3 {
                1 => (was.to_vec(), vec![-1.0; 4]),
                _ => (vec![was[0] + operand, was[1] - operand, operand, operand + 1.0], was.into()),
            };
            assert_eq!(left[at..at + 4], want, "left by invocation {i}");
            assert_eq!(gave[at..at + 4], want_old, "given to invocation {i}");
        }
    });
}

#[test]
fn atomics_keep_neighbouring_words() {
    let source = "
        struct Cell { before: u32, count: atomic<u32>, after: u32 }
        @group(0) @binding(0) var<storage, read_write> cells: array<Cell, 4>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) {
            atomicAdd(&cells[i % 4u].count, i);
        }";
    on_each_device(|gpu| {
        let words: Vec<u32> = (100..112).collect();
        let cells = upload_words(gpu, &words);
        succeed(gpu.dispatch(source, &[&cells], 64));
        let got: Vec<u32> = download_words(&cells);
        let sum = |cell: u32| (0..64).filter(|i| i % 4 == cell).sum::<u32>();
        let want: Vec<u32> = (0..12)
            .map(|at| words[at as usize] + if at % 3 == 1 { sum(at / 3) } else { 0 })
            .collect();
        assert_eq!(got, want);
    });
}
