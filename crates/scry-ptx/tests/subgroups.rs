//! Tests of the PTX of subgroup operations, of all types and in all kinds of control flow.

mod support;

use scry_ir::kir::{
    Access, AddressSpace, Barrier, BinaryOp, Builder, Builtin, Const, GroupOperation, Inst, Kir,
    Place, Reduction, ShuffleSource, SubgroupOp, Type, Value,
};
use scry_ptx::Target;
use support::{TARGETS, text};

const REDUCTIONS: [Reduction; 7] = [
    Reduction::Add,
    Reduction::Mul,
    Reduction::Min,
    Reduction::Max,
    Reduction::And,
    Reduction::Or,
    Reduction::Xor,
];

const GROUP_OPERATIONS: [GroupOperation; 3] =
    [GroupOperation::Reduce, GroupOperation::InclusiveScan, GroupOperation::ExclusiveScan];

/// The control flow around a subgroup operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    /// Uniform control flow.
    Plain,
    /// In a divergent branch.
    Branch,
    /// After some invocations have returned.
    AfterReturn,
    /// In a loop with divergent trip counts.
    Loop,
}

/// Emits the input of an invocation: loaded from a buffer, or for bools computed from its position.
fn input(b: &mut Builder, ty: Type, lane: Value) -> Value {
    let place = Place::new(AddressSpace::Binding(1), Some(lane), ty.size(), 0);
    match ty {
        Type::Bool => {
            let four = b.u32(4);
            b.binary(BinaryOp::Lt, lane, four)
        }
        _ => b.load(ty, place, 1)[0],
    }
}

fn store_result(b: &mut Builder, lane: Value, value: Value) {
    let ty = b.ty(value);
    let value = match ty {
        Type::Bool => {
            let (one, zero) = (b.u32(1), b.u32(0));
            b.select(value, one, zero)
        }
        _ => value,
    };
    b.store(Place::new(AddressSpace::Binding(0), Some(lane), b.ty(value).size(), 0), vec![value]);
}

/// Returns a kernel with one subgroup operation, which `exchange` emits.
fn kernel(
    size: u32,
    flow: Flow,
    ty: Type,
    exchange: &dyn Fn(&mut Builder, Value, Value) -> Value,
) -> Kir {
    let mut b = Builder::new("kernel", [size, 1, 1]);
    b.buffer(Access::ReadWrite);
    b.buffer(Access::Read);
    let lane = b.builtin(Builtin::LocalId(0));
    let ten = b.u32(10);
    let condition = b.binary(BinaryOp::Lt, lane, ten);
    let exchange_once = |b: &mut Builder| {
        let value = input(b, ty, lane);
        let value = exchange(b, lane, value);
        store_result(b, lane, value);
    };
    match flow {
        Flow::Plain => exchange_once(&mut b),
        Flow::Branch => b.if_then(condition, exchange_once),
        Flow::AfterReturn => b.scope(|b, label| {
            b.if_then(condition, |b| b.break_to(label));
            exchange_once(b);
        }),
        Flow::Loop => b.loop_(|b, label| {
            exchange_once(b);
            b.if_then(condition, |b| b.break_to(label));
        }),
    }
    b.finish()
}

fn reduction(size: u32, flow: Flow, ty: Type, op: Reduction, group: GroupOperation) -> Kir {
    kernel(size, flow, ty, &|b, _, value| b.subgroup(SubgroupOp::Reduce { op, group, value }))
}

fn is_supported(op: Reduction, ty: Type) -> bool {
    match op {
        Reduction::And | Reduction::Or | Reduction::Xor => !ty.is_float(),
        _ => ty != Type::Bool,
    }
}

#[test]
fn all_reductions_assemble() {
    for ty in Type::ALL {
        for op in REDUCTIONS.into_iter().filter(|op| is_supported(*op, ty)) {
            for group in GROUP_OPERATIONS {
                for (size, flow) in [(64, Flow::Plain), (48, Flow::Plain), (64, Flow::Branch)] {
                    let kir = reduction(size, flow, ty, op, group);
                    text(&kir, Target::SM_75);
                    text(&kir, Target::SM_90);
                }
            }
        }
    }
}

fn sources(lane: Value) -> [ShuffleSource; 7] {
    [
        ShuffleSource::First,
        ShuffleSource::Lane(lane),
        ShuffleSource::Xor(lane),
        ShuffleSource::Up(lane),
        ShuffleSource::Down(lane),
        ShuffleSource::QuadLane(lane),
        ShuffleSource::QuadXor(3),
    ]
}

#[test]
fn all_shuffles_assemble() {
    for ty in Type::ALL {
        for nth in 0..7 {
            for flow in [Flow::Plain, Flow::Branch] {
                let kir = kernel(64, flow, ty, &|b, lane, value| {
                    b.subgroup(SubgroupOp::Shuffle { source: sources(lane)[nth], value })
                });
                TARGETS.iter().for_each(|target| drop(text(&kir, *target)));
            }
        }
    }
}

#[test]
fn full_subgroups_need_no_active_mask() {
    let sum = |flow| reduction(64, flow, Type::F32, Reduction::Add, GroupOperation::Reduce);
    let plain = text(&sum(Flow::Plain), Target::SM_80);
    assert!(!plain.contains("activemask"), "{plain}");
    assert_eq!(plain.matches("shfl.sync.bfly.b32").count(), 5, "{plain}");
    assert_eq!(plain.matches("4294967295;").count(), 5, "{plain}");
    for flow in [Flow::Branch, Flow::AfterReturn, Flow::Loop] {
        let text = text(&sum(flow), Target::SM_80);
        assert!(text.contains("activemask.b32"), "{flow:?}:\n{text}");
        assert!(text.contains("shfl.sync.idx.b32"), "{flow:?}:\n{text}");
    }
}

#[test]
fn partial_subgroups_use_their_mask() {
    let sum = |size| {
        reduction(size, Flow::Plain, Type::F32, Reduction::Add, GroupOperation::InclusiveScan)
    };
    let few = text(&sum(20), Target::SM_80);
    assert!(few.contains(", 1048575;") && !few.contains("activemask"), "{few}");
    let more = text(&sum(48), Target::SM_80);
    assert!(more.contains("vote.sync.ballot.b32"), "{more}");
}

#[test]
fn integers_use_redux_where_available() {
    let sum = |ty, op| reduction(64, Flow::Branch, ty, op, GroupOperation::Reduce);
    let has = |kir: &Kir, target, expected: &str| {
        let text = text(kir, target);
        assert!(text.contains(expected), "no `{expected}` in\n{text}");
    };
    has(&sum(Type::I32, Reduction::Max), Target::SM_80, "redux.sync.max.s32 ");
    has(&sum(Type::U16, Reduction::Add), Target::SM_90, "redux.sync.add.u32 ");
    has(&sum(Type::U32, Reduction::Xor), Target::SM_90, "redux.sync.xor.b32 ");
    has(&sum(Type::I32, Reduction::Max), Target::SM_75, "shfl.sync.bfly.b32 ");
    has(&sum(Type::U32, Reduction::Mul), Target::SM_90, "shfl.sync.bfly.b32 ");
    has(&sum(Type::U64, Reduction::Add), Target::SM_90, "shfl.sync.bfly.b32 ");
    has(&sum(Type::Bool, Reduction::And), Target::SM_90, "vote.sync.ballot.b32 ");
}

#[test]
fn ballot_words_beyond_subgroup_are_zero() {
    let ballot = |word| {
        kernel(64, Flow::Plain, Type::Bool, &|b, _, value| {
            b.subgroup(SubgroupOp::Ballot { value, word })
        })
    };
    let first = text(&ballot(0), Target::SM_80);
    assert!(first.contains("vote.sync.ballot.b32 "), "{first}");
    let second = text(&ballot(1), Target::SM_80);
    assert!(!second.contains("vote"), "{second}");
    assert!(second.contains("st.global.b32 [%d"), "{second}");
}

/// How a condition of a branch depends on a loaded value.
#[derive(Debug, Clone, Copy)]
enum ConditionSource {
    /// The condition is the value.
    LoadedValue,
    /// The condition is a variable that is assigned if the value is true.
    Assignment,
    /// The condition is a variable that is assigned unless the value exits the scope before.
    ScopeExit,
    /// The condition depends on the trip count of a loop that the value exits.
    TripCount,
    /// The condition is a variable that is assigned if a variable as in `Assignment` is true.
    SecondVariable,
}

/// Emits a condition that depends on `flag`; returns it.
fn set_condition(b: &mut Builder, source: ConditionSource, flag: Value) -> Value {
    let variable = b.var(Type::Bool);
    let always = b.value(Type::Bool, Inst::Const(Const::bool(true)));
    match source {
        ConditionSource::LoadedValue => b.set(variable, flag),
        ConditionSource::Assignment => b.if_then(flag, |b| b.set(variable, always)),
        ConditionSource::ScopeExit => b.scope(|b, label| {
            b.if_then(flag, |b| b.break_to(label));
            b.set(variable, always);
        }),
        ConditionSource::TripCount => {
            let counter = b.var(Type::U32);
            b.finite_loop(|b, label| {
                b.if_then(flag, |b| b.break_to(label));
                let (at, one, four) = (b.get(counter), b.u32(1), b.u32(4));
                let next = b.binary(BinaryOp::Add, at, one);
                b.set(counter, next);
                let enough = b.binary(BinaryOp::Ge, next, four);
                b.if_then(enough, |b| b.break_to(label));
            });
            let (count, two) = (b.get(counter), b.u32(2));
            let more = b.binary(BinaryOp::Lt, two, count);
            b.set(variable, more);
        }
        ConditionSource::SecondVariable => {
            let first = set_condition(b, ConditionSource::Assignment, flag);
            b.if_else(first, |b| b.set(variable, always), |_| ());
        }
    }
    b.get(variable)
}

/// Returns a kernel with subgroup operations under a condition. It depends on a value that all
/// invocations load from one address.
fn kernel_with_loaded_condition(access: Access, source: ConditionSource) -> Kir {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(Access::ReadWrite);
    let flags = b.buffer(access);
    let lane = b.builtin(Builtin::LocalId(0));
    let flag = b.load(Type::U32, Place::new(AddressSpace::Binding(flags), None, 4, 0), 1)[0];
    let zero = b.u32(0);
    let set = b.binary(BinaryOp::Ne, flag, zero);
    let variable = set_condition(&mut b, source, set);
    b.if_then(variable, |b| {
        let value = b.value(Type::F32, Inst::Const(Const::f32(1.0)));
        let op = SubgroupOp::Reduce { op: Reduction::Add, group: GroupOperation::Reduce, value };
        let sum = b.subgroup(op);
        store_result(b, lane, sum);
        b.barrier(Barrier::Subgroup);
    });
    b.finish()
}

#[test]
fn racy_conditions_are_not_uniform() {
    use ConditionSource::{Assignment, LoadedValue, ScopeExit, SecondVariable, TripCount};
    for source in [LoadedValue, Assignment, ScopeExit, TripCount, SecondVariable] {
        let constant = text(&kernel_with_loaded_condition(Access::Read, source), Target::SM_80);
        assert!(!constant.contains("activemask"), "{source:?}: {constant}");
        assert!(constant.contains("bar.warp.sync 4294967295;"), "{source:?}: {constant}");
        let racy = text(&kernel_with_loaded_condition(Access::ReadWrite, source), Target::SM_80);
        assert_eq!(racy.matches("activemask").count(), 2, "{source:?}: {racy}");
    }
}

#[test]
fn unrolled_iterations_keep_their_barriers() {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(Access::ReadWrite);
    let (lane, counter) = (b.builtin(Builtin::LocalId(0)), b.var(Type::U32));
    let [zero, one, ten] = [0, 1, 10].map(|number| b.u32(number));
    b.set(counter, zero);
    b.finite_loop(|b, label| {
        let at = b.get(counter);
        let continues = b.binary(BinaryOp::Lt, at, ten);
        b.if_else(continues, |_| (), |b| b.break_to(label));
        b.barrier(Barrier::Subgroup);
        let next = b.binary(BinaryOp::Add, at, one);
        b.set(counter, next);
    });
    let condition = b.binary(BinaryOp::Lt, lane, ten);
    b.if_then(condition, |b| b.barrier(Barrier::Subgroup));
    b.barrier(Barrier::Subgroup);
    let text = text(&b.finish(), Target::SM_80);
    let barriers: Vec<_> = text.lines().filter(|line| line.contains("bar.warp.sync")).collect();
    let full_masks: Vec<bool> = barriers.iter().map(|line| line.contains("4294967295")).collect();
    let [all, some] = [true, false];
    assert_eq!(full_masks, [all, all, all, all, all, all, all, all, all, all, some, all], "{text}");
}

#[test]
fn exited_lanes_stay_inactive() {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(Access::ReadWrite);
    let lane = b.builtin(Builtin::LocalId(0));
    b.loop_(|b, outer| {
        b.barrier(Barrier::Subgroup);
        b.scope(|b, scope| {
            let ten = b.u32(10);
            let condition = b.binary(BinaryOp::Lt, lane, ten);
            b.if_then(condition, |b| b.break_to(scope));
            b.barrier(Barrier::Subgroup);
        });
        b.barrier(Barrier::Subgroup);
        let ten = b.u32(10);
        let condition = b.binary(BinaryOp::Eq, lane, ten);
        b.if_then(condition, |b| b.break_to(outer));
    });
    b.barrier(Barrier::Subgroup);
    let text = text(&b.finish(), Target::SM_80);
    let barriers: Vec<_> = text.lines().filter(|line| line.contains("bar.warp.sync")).collect();
    let full_masks = |line: &&str| line.contains("4294967295");
    assert_eq!(barriers.iter().map(full_masks).collect::<Vec<_>>(), [false, false, false, true]);
}
