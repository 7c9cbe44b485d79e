//! Subgroup exchange of all types, in all kinds of control flow.

mod support;

use scry_ir::kir::{
    AddressSpace, Barrier, BinaryOp, Builder, Builtin, Const, Extent, Inst, Kir, Place, Reduction,
    ShuffleSource, SubgroupOp, Type, Value,
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

const EXTENTS: [Extent; 3] = [Extent::All, Extent::Inclusive, Extent::Exclusive];

/// The control flow around an exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    /// Uniform control flow.
    Plain,
    /// In a divergent branch.
    Branch,
    /// After some invocations have returned.
    Left,
    /// In a loop with divergent trip counts.
    Loop,
}

/// The value of an invocation, computed from its position.
fn number(b: &mut Builder, ty: Type, lane: Value) -> Value {
    let place = Place::new(AddressSpace::Binding(1), Some(lane), ty.size(), 0);
    match ty {
        Type::Bool => {
            let four = b.u32(4);
            b.binary(BinaryOp::Lt, lane, four)
        }
        _ => b.load(ty, place, 1)[0],
    }
}

fn keep(b: &mut Builder, lane: Value, value: Value) {
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

/// A kernel that exchanges once.
fn kernel(
    size: u32,
    flow: Flow,
    ty: Type,
    exchange: &dyn Fn(&mut Builder, Value, Value) -> Value,
) -> Kir {
    let mut b = Builder::new("kernel", [size, 1, 1]);
    b.buffer(true);
    b.buffer(false);
    let lane = b.builtin(Builtin::LocalId(0));
    let ten = b.u32(10);
    let some = b.binary(BinaryOp::Lt, lane, ten);
    let step = |b: &mut Builder| {
        let value = number(b, ty, lane);
        let value = exchange(b, lane, value);
        keep(b, lane, value);
    };
    match flow {
        Flow::Plain => step(&mut b),
        Flow::Branch => b.if_then(some, step),
        Flow::Left => b.scope(|b, label| {
            b.if_then(some, |b| b.leave(label));
            step(b);
        }),
        Flow::Loop => b.repeat(false, |b, label| {
            step(b);
            b.if_then(some, |b| b.leave(label));
        }),
    }
    b.finish()
}

fn reduction(size: u32, flow: Flow, ty: Type, op: Reduction, extent: Extent) -> Kir {
    kernel(size, flow, ty, &|b, _, value| b.subgroup(SubgroupOp::Reduce { op, extent, value }))
}

fn reduces(op: Reduction, ty: Type) -> bool {
    match op {
        Reduction::And | Reduction::Or | Reduction::Xor => !ty.is_float(),
        _ => ty != Type::Bool,
    }
}

#[test]
fn all_reductions_assemble() {
    for ty in Type::ALL {
        for op in REDUCTIONS.into_iter().filter(|op| reduces(*op, ty)) {
            for extent in EXTENTS {
                for (size, flow) in [(64, Flow::Plain), (48, Flow::Plain), (64, Flow::Branch)] {
                    let kir = reduction(size, flow, ty, op, extent);
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
    let sum = |flow| reduction(64, flow, Type::F32, Reduction::Add, Extent::All);
    let plain = text(&sum(Flow::Plain), Target::SM_80);
    assert!(!plain.contains("activemask"), "{plain}");
    assert_eq!(plain.matches("shfl.sync.bfly.b32").count(), 5, "{plain}");
    assert_eq!(plain.matches("4294967295;").count(), 5, "{plain}");
    for flow in [Flow::Branch, Flow::Left, Flow::Loop] {
        let text = text(&sum(flow), Target::SM_80);
        assert!(text.contains("activemask.b32"), "{flow:?}:\n{text}");
        assert!(text.contains("shfl.sync.idx.b32"), "{flow:?}:\n{text}");
    }
}

#[test]
fn a_partial_subgroup_is_known() {
    let sum = |size| reduction(size, Flow::Plain, Type::F32, Reduction::Add, Extent::Inclusive);
    let few = text(&sum(20), Target::SM_80);
    assert!(few.contains(", 1048575;") && !few.contains("activemask"), "{few}");
    let more = text(&sum(48), Target::SM_80);
    assert!(more.contains("vote.sync.ballot.b32"), "{more}");
}

#[test]
fn integers_use_redux_where_available() {
    let sum = |ty, op| reduction(64, Flow::Branch, ty, op, Extent::All);
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

/// How a loaded value determines the active invocations.
#[derive(Debug, Clone, Copy)]
enum Decides {
    /// The value is the condition.
    Itself,
    /// The condition is a variable that is assigned where it holds.
    ByAssignment,
    /// A variable that is assigned unless a scope was left before.
    ByLeaving,
    /// A variable that counts the iterations of a loop.
    ByCounting,
    /// As before, through another variable.
    ByTheNext,
}

/// Sets a variable of the kernel, which is zero at first, as `flag` decides.
fn decide(b: &mut Builder, decides: Decides, flag: Value) -> Value {
    let held = b.var(Type::Bool);
    let yes = b.value(Type::Bool, Inst::Const(Const::bool(true)));
    match decides {
        Decides::Itself => b.set(held, flag),
        Decides::ByAssignment => b.if_then(flag, |b| b.set(held, yes)),
        Decides::ByLeaving => b.scope(|b, label| {
            b.if_then(flag, |b| b.leave(label));
            b.set(held, yes);
        }),
        Decides::ByCounting => {
            let counter = b.var(Type::U32);
            b.repeat(true, |b, label| {
                b.if_then(flag, |b| b.leave(label));
                let (at, one, four) = (b.get(counter), b.u32(1), b.u32(4));
                let next = b.binary(BinaryOp::Add, at, one);
                b.set(counter, next);
                let enough = b.binary(BinaryOp::Ge, next, four);
                b.if_then(enough, |b| b.leave(label));
            });
            let (count, two) = (b.get(counter), b.u32(2));
            let more = b.binary(BinaryOp::Lt, two, count);
            b.set(held, more);
        }
        Decides::ByTheNext => {
            let first = decide(b, Decides::ByAssignment, flag);
            b.if_else(first, |b| b.set(held, yes), |_| ());
        }
    }
    b.get(held)
}

/// A kernel whose condition depends on a value that all invocations load from one address.
fn after_a_read(writable: bool, decides: Decides) -> Kir {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(true);
    let flags = b.buffer(writable);
    let lane = b.builtin(Builtin::LocalId(0));
    let flag = b.load(Type::U32, Place::new(AddressSpace::Binding(flags), None, 4, 0), 1)[0];
    let zero = b.u32(0);
    let set = b.binary(BinaryOp::Ne, flag, zero);
    let held = decide(&mut b, decides, set);
    b.if_then(held, |b| {
        let value = b.value(Type::F32, Inst::Const(Const::f32(1.0)));
        let op = SubgroupOp::Reduce { op: Reduction::Add, extent: Extent::All, value };
        let sum = b.subgroup(op);
        keep(b, lane, sum);
        b.barrier(Barrier::Subgroup);
    });
    b.finish()
}

#[test]
fn racy_conditions_are_not_uniform() {
    use Decides::{ByAssignment, ByCounting, ByLeaving, ByTheNext, Itself};
    for decides in [Itself, ByAssignment, ByLeaving, ByCounting, ByTheNext] {
        let constant = text(&after_a_read(false, decides), Target::SM_80);
        assert!(!constant.contains("activemask"), "{decides:?}: {constant}");
        assert!(constant.contains("bar.warp.sync 4294967295;"), "{decides:?}: {constant}");
        let racy = text(&after_a_read(true, decides), Target::SM_80);
        assert_eq!(racy.matches("activemask").count(), 2, "{decides:?}: {racy}");
    }
}

#[test]
fn unrolled_iterations_keep_their_barriers() {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(true);
    let (lane, counter) = (b.builtin(Builtin::LocalId(0)), b.var(Type::U32));
    let [zero, one, ten] = [0, 1, 10].map(|number| b.u32(number));
    b.set(counter, zero);
    b.repeat(true, |b, label| {
        let at = b.get(counter);
        let goes_on = b.binary(BinaryOp::Lt, at, ten);
        b.if_else(goes_on, |_| (), |b| b.leave(label));
        b.barrier(Barrier::Subgroup);
        let next = b.binary(BinaryOp::Add, at, one);
        b.set(counter, next);
    });
    let some = b.binary(BinaryOp::Lt, lane, ten);
    b.if_then(some, |b| b.barrier(Barrier::Subgroup));
    b.barrier(Barrier::Subgroup);
    let text = text(&b.finish(), Target::SM_80);
    let barriers: Vec<_> = text.lines().filter(|line| line.contains("bar.warp.sync")).collect();
    let named: Vec<bool> = barriers.iter().map(|line| line.contains("4294967295")).collect();
    let [all, some] = [true, false];
    assert_eq!(named, [all, all, all, all, all, all, all, all, all, all, some, all], "{text}");
}

#[test]
fn lanes_that_left_stay_inactive() {
    let mut b = Builder::new("kernel", [64, 1, 1]);
    b.buffer(true);
    let lane = b.builtin(Builtin::LocalId(0));
    b.repeat(false, |b, outer| {
        b.barrier(Barrier::Subgroup);
        b.scope(|b, scope| {
            let ten = b.u32(10);
            let some = b.binary(BinaryOp::Lt, lane, ten);
            b.if_then(some, |b| b.leave(scope));
            b.barrier(Barrier::Subgroup);
        });
        b.barrier(Barrier::Subgroup);
        let ten = b.u32(10);
        let some = b.binary(BinaryOp::Eq, lane, ten);
        b.if_then(some, |b| b.leave(outer));
    });
    b.barrier(Barrier::Subgroup);
    let text = text(&b.finish(), Target::SM_80);
    let barriers: Vec<_> = text.lines().filter(|line| line.contains("bar.warp.sync")).collect();
    let named = |line: &&str| line.contains("4294967295");
    assert_eq!(barriers.iter().map(named).collect::<Vec<_>>(), [false, false, false, true]);
}
