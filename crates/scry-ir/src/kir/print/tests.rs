//! Tests of printing: each kind of statement, instruction and constant.

use crate::Access;
use crate::kir::{
    AddressSpace, AtomicOp, Barrier, BinaryOp, Builder, Builtin, Const, FragmentPlace,
    GroupOperation, Inst, Label, MatrixElement, MatrixSize, MatrixType, MatrixUse, Place,
    Reduction, ShuffleSource, SubgroupOp, Type, UnaryOp, Value, Var,
};

#[test]
fn kernel_text() {
    let mut b = Builder::new("all", [8, 4, 1]);
    let (read, write) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    b.set_buffer_type(read, "weights", Type::F16);
    b.immediates(16);
    let shared = b.workgroup_array(Type::F32, 64);
    b.local_array(Type::Bool, 3);
    let var = b.var(Type::U32);
    let i = b.builtin(Builtin::LocalId(1));
    b.set(var, i);
    b.finite_loop(|b, outer| {
        b.loop_(|b, _| {
            let loaded =
                b.load(Type::F32, Place::new(AddressSpace::Binding(read), Some(i), 16, 8), 2);
            b.store(Place::new(shared, Some(i), 4, 0), loaded.clone());
            let yes = b.constant(Const::bool(true));
            let exit = |b: &mut Builder| b.break_to(outer);
            b.if_else(yes, |b| b.break_to(Label::KERNEL), exit);
        });
    });
    b.scope(|b, _| {
        b.barrier(Barrier::Workgroup);
        let old = b.get(var);
        b.if_then(Value(3), |b| {
            b.store(Place::new(AddressSpace::Binding(write), None, 4, 12), vec![old])
        });
    });
    b.barrier(Barrier::Subgroup);
    let expected = "\
kernel all [8, 4, 1]
buffer binding0: read f16 weights
buffer binding1: read_write u32
immediate: 16 bytes
workgroup0: 64 * f32
local0: 3 * bool
var v0: u32
barriers order storage

%0: u32 = local_id.y
v0 = %0
L1: finite loop {
    L2: loop {
        %1, %2: f32 = load binding0[%0 * 16 + 8]
        store workgroup0[%0 * 4] = %1, %2
        %3: bool = true
        if %3 {
            break kernel
        } else {
            break L1
        }
    }
}
L3: scope {
    barrier workgroup
    %4: u32 = v0
    if %3 {
        store binding1[12] = %4
    }
}
barrier subgroup
";
    assert_eq!(b.finish().to_string(), expected);
}

#[test]
fn instruction_text() {
    let [a, b, c] = [7, 8, 9].map(Value);
    let place = Place::new(AddressSpace::Local(2), None, 4, 4);
    let atomic = |op, value, compare| Inst::Atomic { op, place, value, compare };
    let shuffle = |source| Inst::Subgroup(SubgroupOp::Shuffle { source, value: a });
    let matrix =
        MatrixType { role: MatrixUse::B, size: MatrixSize::M16, element: MatrixElement::F16 };
    let first = Place::new(AddressSpace::Workgroup(1), Some(a), 2, 32);
    let fragment = FragmentPlace { matrix, place: first, stride: b, row_major: false };
    let reduce =
        SubgroupOp::Reduce { op: Reduction::Add, group: GroupOperation::ExclusiveScan, value: a };
    let expected = [
        (Inst::Unary(UnaryOp::InverseSqrt, a), "inverse_sqrt %7"),
        (Inst::Binary(BinaryOp::Dot4I8, a, b), "dot4_i8 %7, %8"),
        (Inst::Fma(a, b, c), "fma %7, %8, %9"),
        (Inst::Select(a, b, c), "select %7, %8, %9"),
        (Inst::Convert(a), "convert %7"),
        (Inst::Bitcast(a), "bitcast %7"),
        (
            Inst::ArrayLength { binding: 1, offset: 16, stride: 4 },
            "array_length binding1 from 16 by 4",
        ),
        (Inst::Get(Var(3)), "v3"),
        (Inst::Extra(a, 2), "extra 2 of %7"),
        (atomic(AtomicOp::Load, None, None), "atomic load local2[4]"),
        (
            atomic(AtomicOp::CompareExchange, Some(a), Some(b)),
            "atomic compare_exchange local2[4], %7, %8",
        ),
        (Inst::Subgroup(reduce), "subgroup add exclusive_scan %7"),
        (Inst::Subgroup(SubgroupOp::Ballot { value: a, word: 1 }), "subgroup ballot %7 word 1"),
        (shuffle(ShuffleSource::First), "subgroup shuffle %7 from first"),
        (shuffle(ShuffleSource::Xor(b)), "subgroup shuffle %7 from xor %8"),
        (shuffle(ShuffleSource::QuadXor(2)), "subgroup shuffle %7 from quad_xor 2"),
        (
            Inst::LoadFragment(fragment),
            "load_fragment b16x16_f16 workgroup1[%7 * 2 + 32] columns %8",
        ),
        (
            Inst::MultiplyFragments { a: [a, b, c, a], b: [b, c], c: [a; 4] },
            "multiply_fragments %7, %8, %9, %7 by %8, %9 to %7, %7, %7, %7",
        ),
        (Inst::Builtin(Builtin::SubgroupLane), "subgroup_lane"),
        (Inst::Builtin(Builtin::GroupCount(2)), "group_count.z"),
    ];
    for (inst, text) in expected {
        assert_eq!(inst.to_string(), text);
    }
}

#[test]
fn constant_text() {
    let f16 = |bits| Const { ty: Type::F16, bits };
    let expected = [
        (Const::bool(false), "false"),
        (Const::i32(-5), "-5"),
        (Const::u32(u32::MAX), "4294967295"),
        (Const::int(Type::I16, -2), "-2"),
        (Const { ty: Type::U64, bits: u64::MAX }, "18446744073709551615"),
        (Const::f32(1.0), "1.0"),
        (Const::f32(-0.0), "-0.0"),
        (Const::f32(f32::INFINITY), "inf"),
        (Const { ty: Type::F32, bits: 0x7fc0_0001 }, "nan 0x7fc00001"),
        (Const::f64(0.1), "0.1"),
        (f16(0x3c00), "1.0"),
        (f16(0xc100), "-2.5"),
        (f16(0x0001), "5.9604645e-8"),
        (f16(0x7c00), "inf"),
        (f16(0x7e00), "nan 0x7e00"),
    ];
    for (constant, text) in expected {
        assert_eq!(constant.to_string(), text);
    }
}
