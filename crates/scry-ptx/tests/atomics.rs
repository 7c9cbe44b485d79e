//! Tests of the PTX of atomics, of all types in storage buffers and workgroup memory.

mod support;

use scry_ir::kir::{
    Access, AddressSpace, AtomicOp, Builder, Builtin, Const, Kir, Place, Type, Value,
};
use scry_ptx::Target;
use support::{TARGETS, text};

const OPS: [AtomicOp; 11] = [
    AtomicOp::Load,
    AtomicOp::Store,
    AtomicOp::Add,
    AtomicOp::Sub,
    AtomicOp::Min,
    AtomicOp::Max,
    AtomicOp::And,
    AtomicOp::Or,
    AtomicOp::Xor,
    AtomicOp::Exchange,
    AtomicOp::CompareExchange,
];

const F32_OPS: [AtomicOp; 5] =
    [AtomicOp::Load, AtomicOp::Store, AtomicOp::Add, AtomicOp::Sub, AtomicOp::Exchange];

fn ops(ty: Type) -> &'static [AtomicOp] {
    if ty == Type::F32 { &F32_OPS } else { &OPS }
}

/// Returns a kernel that executes an operation twice: once its result is stored, once it is unused.
/// `shared` selects workgroup memory; `constant`, constant operands.
fn kernel(ty: Type, op: AtomicOp, shared: bool, constant: bool) -> Kir {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let space = if shared {
        b.workgroup_array(ty, 64)
    } else {
        AddressSpace::Binding(b.buffer(Access::ReadWrite))
    };
    let index = b.builtin(Builtin::LocalId(0));
    let place = |at: Value| Place::new(AddressSpace::Binding(out), Some(at), ty.size(), 0);
    let operand = |b: &mut Builder| match constant {
        true => b.constant(Const { ty, bits: 5 }),
        false => b.load(ty, place(index), 1)[0],
    };
    for is_used in [true, false] {
        let value = (op != AtomicOp::Load).then(|| operand(&mut b));
        let compare = (op == AtomicOp::CompareExchange).then(|| operand(&mut b));
        let memory = Place::new(space, Some(index), ty.size(), 0);
        let old = b.atomic(ty, op, memory, value, compare);
        if is_used && op != AtomicOp::Store {
            b.store(place(index), vec![old]);
        }
    }
    b.finish()
}

#[test]
fn all_atomics_assemble() {
    for ty in [Type::I32, Type::U32, Type::I64, Type::U64, Type::F32] {
        for op in ops(ty) {
            for (shared, constant) in [(false, false), (false, true), (true, false), (true, true)] {
                let kir = kernel(ty, *op, shared, constant);
                for target in [Target::SM_75, Target::SM_90] {
                    let text = text(&kir, target);
                    let scope = if shared { ".relaxed.cta.shared" } else { ".relaxed.gpu.global" };
                    assert_eq!(text.matches(scope).count(), 2, "{text}");
                }
            }
        }
    }
}

#[track_caller]
fn assert_has(ty: Type, op: AtomicOp, shared: bool, expected: &[&str]) {
    for target in TARGETS {
        let text = text(&kernel(ty, op, shared, false), target);
        for line in expected {
            assert!(text.contains(line), "no `{line}` in\n{text}");
        }
    }
}

#[test]
fn atomic_instructions_match_the_type() {
    let has = |ty, op, expected: &str| assert_has(ty, op, false, &[expected]);
    has(Type::I64, AtomicOp::Add, "atom.relaxed.gpu.global.add.u64 ");
    has(Type::I32, AtomicOp::Add, "atom.relaxed.gpu.global.add.s32 ");
    has(Type::F32, AtomicOp::Add, "atom.relaxed.gpu.global.add.f32 ");
    has(Type::I64, AtomicOp::Min, "atom.relaxed.gpu.global.min.s64 ");
    has(Type::U32, AtomicOp::Max, "atom.relaxed.gpu.global.max.u32 ");
    has(Type::I32, AtomicOp::Xor, "atom.relaxed.gpu.global.xor.b32 ");
    has(Type::F32, AtomicOp::Exchange, "atom.relaxed.gpu.global.exch.b32 ");
    has(Type::U64, AtomicOp::CompareExchange, "atom.relaxed.gpu.global.cas.b64 ");
    has(Type::F32, AtomicOp::Load, "ld.relaxed.gpu.global.b32 ");
    has(Type::U64, AtomicOp::Store, "st.relaxed.gpu.global.b64 ");
}

#[test]
fn atomic_sub_adds_the_negation() {
    let lines = ["sub.u32 ", "atom.relaxed.cta.shared.add.u32 "];
    assert_has(Type::U32, AtomicOp::Sub, true, &lines);
    assert_has(Type::I32, AtomicOp::Sub, true, &["sub.u32 ", ".shared.add.s32 "]);
    assert_has(Type::F32, AtomicOp::Sub, true, &["neg.f32 ", ".shared.add.f32 "]);
    assert_has(Type::U64, AtomicOp::Sub, true, &["sub.u64 ", ".shared.add.u64 "]);
}

#[test]
fn unused_atomic_results_emit_red() {
    assert_has(Type::U32, AtomicOp::Add, false, &["red.relaxed.gpu.global.add.u32 "]);
    assert_has(Type::U32, AtomicOp::Max, true, &["red.relaxed.cta.shared.max.u32 "]);
    assert_has(Type::F32, AtomicOp::Sub, false, &["red.relaxed.gpu.global.add.f32 "]);
    let exchanged = text(&kernel(Type::U32, AtomicOp::Exchange, false, false), Target::SM_80);
    assert!(!exchanged.contains("red."), "{exchanged}");
}
