//! Tests of the interpreter, on kernels with known results.

use super::{BoundsPolicy, Event, InterpretError, Interpreter, Invocation, scalar};
use crate::Access;
use crate::Program;
use crate::kir::{
    AddressSpace, Barrier, BinaryOp, Builder, Builtin, Const, Inst, Kir, KirOptions, Place, Stmt,
    Type, UnaryOp, Value,
};

fn lower(source: &str) -> Kir {
    let program = Program::parse(source).unwrap_or_else(|error| panic!("{error}"));
    program.to_kir(&KirOptions { checked: true }).unwrap_or_else(|error| panic!("{error}"))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Returns the content of a kernel's only buffer after its execution.
fn run(kir: &Kir, len: usize, subgroup_size: u32) -> Vec<u32> {
    let mut interpreter = Interpreter::new(kir, vec![vec![0; 4 * len]]);
    interpreter.subgroup_size = subgroup_size;
    interpreter.run([2, 1, 1]).unwrap_or_else(|error| panic!("{error}"));
    words(&interpreter.buffers[0])
}

#[test]
fn divergent_uniform_loads_are_errors() {
    let mut b = Builder::new("flag", [2, 1, 1]);
    let shared = b.workgroup_array(Type::U32, 1);
    let lane = b.builtin(Builtin::LocalId(0));
    let one = b.u32(1);
    let first = b.binary(BinaryOp::Lt, lane, one);
    b.if_then(first, |b| {
        b.workgroup_uniform_load(Type::U32, Place::new(shared, None, 4, 0), 1);
    });
    let error = Interpreter::new(&b.finish(), Vec::new()).run([1; 3]).unwrap_err();
    let expected = InterpretError::DivergentBarrier { group: [0; 3], arrived: 1, expected: 2 };
    assert_eq!(error, expected);
}

#[test]
fn barriers_order_workgroup_memory() {
    let kir = lower(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
        var<workgroup> shared_: array<u32, 8>;
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
            shared_[i] = id.x;
            for (var step = 1u; step < 8u; step *= 2u) {
                workgroupBarrier();
                let other = shared_[(i + step) % 8u];
                workgroupBarrier();
                shared_[i] += other;
            }
            out[id.x] = shared_[i];
        }",
    );
    assert_eq!(run(&kir, 16, 1), [[28; 8], [92; 8]].concat());
}

#[test]
fn subgroups_see_active_invocations() {
    let kir = lower(
        "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(8)
        fn main(@builtin(global_invocation_id) id: vec3u, @builtin(subgroup_size) size: u32) {
            var sum = 0u;
            if (id.x & 1u) == 1u { sum = subgroupAdd(id.x); }
            out[id.x] = sum * 100u + subgroupBallot(id.x % 4u == 2u).x * 10u + size;
        }",
    );
    let sums = [4, 4, 12, 12, 20, 20, 28, 28];
    let expected = (0..16).map(|id| if id % 2 == 1 { sums[id / 2] * 100 + 44 } else { 44 });
    assert_eq!(run(&kir, 16, 4), expected.collect::<Vec<_>>());
}

#[test]
fn lanes_exit_loops_separately() {
    let kir = lower(
        "@group(0) @binding(0) var<storage, read_write> out: array<atomic<u32>>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3u) {
            var n = 0u;
            loop { if n > id.x { break; } n += 2u; }
            if id.x == 5u { return; }
            let before = atomicAdd(&out[8], n);
            atomicStore(&out[id.x], before);
        }",
    );
    // Each invocation but 5 adds the smallest even number above its id, in the order of the ids.
    assert_eq!(run(&kir, 9, 1), [0, 2, 4, 8, 12, 0, 18, 26, 34]);
}

#[test]
fn fragments_are_multiplied() {
    let mut b = Builder::new("product", [32, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let lane = b.builtin(Builtin::LocalId(0));
    let number = b.convert(Type::F32, lane);
    let c = b.constant(Const::f32(1000.0));
    let inst = Inst::MultiplyFragments { a: [number; 4], b: [number; 2], c: [c; 4] };
    let mut kir = b.finish();
    let first = Value(kir.values.len() as u32);
    let ty = Type::F32;
    kir.values.push(crate::kir::Definition { ty, inst });
    for nth in 1..4 {
        kir.values.push(crate::kir::Definition { ty, inst: Inst::Extra(first, nth) });
    }
    kir.body.push(Stmt::Let(first));
    let place = Place::new(AddressSpace::Binding(out), Some(lane), 16, 0);
    let values = (0..4).map(|nth| Value(first.0 + nth)).collect();
    kir.body.push(Stmt::Store { place, values, at: None });
    // Elements by row and column: a lane of `a` holds (lane / 4, lane % 4 * 2) and the next column.
    let mut expected = Vec::new();
    for lane in 0..32u32 {
        for nth in 0..4 {
            let (row, column) = (lane / 4, lane % 4 * 2 + nth % 2);
            let products = (0..8).map(|k| (row * 4 + k / 2) * (column * 4 + k / 2));
            expected.push(1000.0 + products.sum::<u32>() as f32);
        }
    }
    let found: Vec<_> = run(&kir, 128, 32).into_iter().map(f32::from_bits).collect();
    assert_eq!(found, expected);
}

/// Returns a kernel of two invocations, which both store twice their id to element `index`, and the
/// stored value.
fn store_kernel(index: u32) -> (Kir, Value) {
    let mut b = Builder::new("store", [2, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let index = b.constant(Const::u32(index));
    let id = b.builtin(Builtin::LocalId(0));
    let twice = b.binary(BinaryOp::Add, id, id);
    b.store(Place::new(AddressSpace::Binding(out), Some(index), 4, 0), vec![twice]);
    (b.finish(), twice)
}

#[test]
fn copies_keep_nan_bits() {
    const NAN: u32 = 0xffa0_1234;
    let mut kir = lower(
        "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        var<workgroup> shared_: f32;
        @compute @workgroup_size(1)
        fn main(@builtin(local_invocation_index) i: u32) {
            var copy = data[0];
            data[1] = copy;
            shared_ = copy;
            data[2] = shared_;
            data[3] = select(1f, copy, i == 0u);
            data[4] = bitcast<f32>(bitcast<u32>(copy) ^ 1u);
            data[5] = -copy;
            data[6] = fma(copy, 2f, copy);
            data[7] = 42f;
        }",
    );
    for definition in &mut kir.values {
        if definition.inst == Inst::Const(Const::f32(42.0)) {
            definition.inst = Inst::Const(Const { ty: Type::F32, bits: NAN.into() });
        }
    }
    let mut data = vec![0; 32];
    data[..4].copy_from_slice(&NAN.to_le_bytes());
    let mut interpreter = Interpreter::new(&kir, vec![data]);
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
    // Negation and multiplication are arithmetic.
    let (quiet, changed) = (0x7fc0_0000, NAN ^ 1);
    assert_eq!(
        words(&interpreter.buffers[0]),
        [NAN, NAN, NAN, NAN, changed, quiet, quiet, NAN],
        "{kir}"
    );
}

#[test]
fn shuffles_keep_nan_bits() {
    let kir = lower(
        "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(4)
        fn main(@builtin(local_invocation_index) i: u32) {
            let value = data[i];
            data[i] = subgroupShuffleXor(value, 1u);
            data[i + 4u] = subgroupAdd(value);
        }",
    );
    let nan = 0x7fa0_0001u32;
    let data = [nan, 0, 0, 0, 0, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut interpreter = Interpreter::new(&kir, vec![data]);
    interpreter.subgroup_size = 2;
    interpreter.run([1; 3]).unwrap_or_else(|error| panic!("{error}"));
    let quiet = 0x7fc0_0000;
    assert_eq!(words(&interpreter.buffers[0]), [0, nan, 0, 0, quiet, quiet, 0, 0]);
}

#[test]
fn policy_ignores_accesses_out_of_bounds() {
    let kir = lower(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32, 8>;
        @group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>, 8>;
        @compute @workgroup_size(1)
        fn main() {
            data[0] = data[5] + 7u;
            data[6] = 9u;
            data[1] = atomicAdd(&counts[3], 5u) + 1u;
        }",
    );
    let mut interpreter = Interpreter::new(&kir, vec![vec![1; 8], vec![3; 4]]);
    let error = interpreter.run([1; 3]).unwrap_err();
    assert!(matches!(error, InterpretError::OutOfBounds { byte: 20, .. }), "{error}");
    interpreter.bounds = BoundsPolicy::ReadZeroSkipWrite;
    let mut written = Vec::new();
    let mut observer = |_, event| {
        if let Event::Written { byte, .. } = event {
            written.push(byte);
        }
    };
    interpreter.observe([1; 3], &mut observer).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(words(&interpreter.buffers[0]), [7, 1]);
    assert_eq!(interpreter.buffers[1], [3; 4]);
    assert_eq!(written, [0, 4]);
}

#[test]
fn accesses_out_of_bounds_are_errors() {
    let (kir, _) = store_kernel(3);
    let error = Interpreter::new(&kir, vec![vec![0; 12]]).run([1; 3]).unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("accesses 4 bytes at byte 12 of Binding(0), which has 12"), "{text}");
}

#[test]
fn read_only_writes_are_errors() {
    let (mut kir, _) = store_kernel(0);
    kir.buffers[0].writable = false;
    let error = Interpreter::new(&kir, vec![vec![0; 12]]).run([1; 3]).unwrap_err();
    assert!(matches!(error, InterpretError::ReadOnly { .. }), "{error}");
}

#[test]
fn values_are_invisible_before_definition() {
    let (mut kir, twice) = store_kernel(0);
    kir.body.retain(|stmt| *stmt != Stmt::Let(twice));
    let error = Interpreter::new(&kir, vec![vec![0; 12]]).run([1; 3]).unwrap_err();
    assert!(matches!(error, InterpretError::NotComputed { value, .. } if value == twice));
}

#[test]
fn subgroup_size_has_bounds() {
    let (kir, _) = store_kernel(0);
    for (size, is_valid) in [(0, false), (1, true), (128, true), (129, false)] {
        let mut interpreter = Interpreter::new(&kir, vec![vec![0; 12]]);
        interpreter.subgroup_size = size;
        let result = interpreter.run([1; 3]);
        assert_eq!(result, if is_valid { Ok(()) } else { Err(InterpretError::SubgroupSize(size)) });
    }
    let text = InterpretError::SubgroupSize(200).to_string();
    assert_eq!(text, "the subgroup size is 200, but must be 1 to 128");
}

#[test]
fn endless_loops_are_errors() {
    let mut b = Builder::new("endless", [1; 3]);
    let label = crate::kir::Label(1);
    b.buffer(Access::ReadWrite);
    let mut kir = b.finish();
    kir.labels = 2;
    kir.body.push(Stmt::Loop { label, body: Vec::new(), finite: false });
    let mut interpreter = Interpreter::new(&kir, vec![Vec::new()]);
    interpreter.iteration_limit = 10;
    let error = interpreter.run([1; 3]).unwrap_err();
    assert_eq!(error, InterpretError::IterationLimit { group: [0; 3], limit: 10 });
}

#[test]
fn divergent_barriers_are_errors() {
    let mut b = Builder::new("divergent", [4, 1, 1]);
    let id = b.builtin(Builtin::LocalId(0));
    let three = b.constant(Const::u32(3));
    let condition = b.binary(BinaryOp::Lt, id, three);
    let mut kir = b.finish();
    let then_block = vec![Stmt::Barrier(Barrier::Workgroup, None)];
    kir.body.push(Stmt::If { condition, then_block, else_block: Vec::new(), at: None });
    let error = Interpreter::new(&kir, Vec::new()).run([1; 3]).unwrap_err();
    assert_eq!(error.to_string(), "3 of 4 invocations of workgroup [0, 0, 0] arrive at a barrier");
}

#[test]
fn observers_see_each_step() {
    let (kir, twice) = store_kernel(0);
    let mut interpreter = Interpreter::new(&kir, vec![vec![0; 4]]);
    let mut events = Vec::new();
    let invocation = Invocation { group: [4, 0, 0], local: [1, 0, 0] };
    let mut observer = |invocation, event| events.push((invocation, event));
    interpreter.observe_invocation([5, 1, 1], invocation, &mut observer).unwrap();
    let value = Const::u32(2);
    let written = Event::Written { space: AddressSpace::Binding(0), byte: 0, value };
    let expected = [Event::Computed(twice, value), written].map(|event| (invocation, event));
    assert!(events.ends_with(&expected), "{events:?}");
}

#[test]
fn ldexp_reaches_all_doubles() {
    let ldexp = |x: f64, exponent| {
        let x = Const { ty: Type::F64, bits: x.to_bits() };
        scalar::real(scalar::binary(BinaryOp::Ldexp, x, Const::i32(exponent)))
    };
    let smallest = f64::from_bits(1);
    assert_eq!(ldexp(2f64.powi(1023), -2050), f64::MIN_POSITIVE / 32.0);
    assert_eq!(ldexp(2f64.powi(1023), -2097), smallest);
    assert_eq!(ldexp(2f64.powi(1023), -2099), 0.0);
    assert_eq!(ldexp(smallest, 2097), 2f64.powi(1023));
    assert_eq!(ldexp(smallest, 2098), f64::INFINITY);
    assert_eq!(ldexp(-smallest, i32::MAX), f64::NEG_INFINITY);
    // Rounding twice would round these to 2.5, and then to 2 times the smallest number.
    for exponent in [-1000, 0, 1000] {
        let x = 2f64.powi(exponent) * 2.5f64.next_up();
        assert_eq!(ldexp(x, -1074 - exponent), 3.0 * smallest, "2^{exponent}");
    }
}

#[test]
fn frexp_reaches_all_doubles() {
    let frexp = |x: f64| {
        let x = Const { ty: Type::F64, bits: x.to_bits() };
        let fraction = scalar::real(scalar::unary(UnaryOp::FrexpFraction, x));
        (fraction, scalar::unary(UnaryOp::FrexpExponent, x).as_i64())
    };
    assert_eq!(frexp(f64::MAX), (1f64.next_down(), 1024));
    assert_eq!(frexp(-2f64.powi(1023)), (-0.5, 1024));
    assert_eq!(frexp(f64::MIN_POSITIVE), (0.5, -1021));
    assert_eq!(frexp(f64::from_bits(1)), (0.5, -1073));
    assert_eq!(frexp(-f64::from_bits(3)), (-0.75, -1072));
    assert_eq!(frexp(12.0), (0.75, 4));
    assert_eq!(frexp(0.0), (0.0, 0));
}

#[test]
fn doubles_are_rounded_to_f16_once() {
    let rounded = |x: f64| scalar::float(Type::F16, x).bits as u16;
    for bits in 0..0x7c00u16 {
        // The middle of two neighbours; that of the largest number and 2^16 rounds to infinity.
        let [low, high] = [bits, bits + 1].map(|bits| half::f16::from_bits(bits).to_f64());
        let high = if high.is_infinite() { 65536.0 } else { high };
        let middle = (low + high) / 2.0;
        assert_eq!(rounded(low), bits);
        assert_eq!(rounded(middle), bits + bits % 2, "{middle}");
        assert_eq!(rounded(middle.next_down()), bits, "below {middle}");
        assert_eq!(rounded(-middle.next_up()), 0x8000 | (bits + 1), "above {middle}");
    }
    assert_eq!([f64::MAX, f64::INFINITY].map(rounded), [0x7c00; 2]);
    assert_eq!(rounded(-f64::from_bits(1)), 0x8000);
}
