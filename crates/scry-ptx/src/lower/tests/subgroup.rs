//! Tests of subgroup operations and matrix products, for several sets of active lanes.

use half::f16;
use scry_ir::kir::{
    Access, AddressSpace, Builder, Builtin, GroupOperation, Kir, Place, Reduction, ShuffleSource,
    SubgroupOp, Type, Value,
};

use super::support;
use super::warp::{BUFFER, Warp};
use crate::target::Target;

/// The active lanes of a block of at most one warp: all of them, or those that a branch on a mask
/// in memory selects.
#[derive(Debug, Clone, Copy)]
struct ActiveLanes {
    threads: usize,
    mask: u32,
}

const ACTIVE_LANES: [ActiveLanes; 7] = [
    ActiveLanes { threads: 32, mask: u32::MAX },
    ActiveLanes { threads: 20, mask: (1 << 20) - 1 },
    ActiveLanes { threads: 1, mask: 1 },
    ActiveLanes { threads: 32, mask: 0x5a5a_0ff3 },
    ActiveLanes { threads: 32, mask: 0x8000_0000 },
    ActiveLanes { threads: 32, mask: 0xffff_fffe },
    ActiveLanes { threads: 27, mask: 0x0213_7c00 },
];

impl ActiveLanes {
    fn has(self, lane: usize) -> bool {
        self.mask >> lane & 1 == 1
    }

    fn lanes(self) -> Vec<usize> {
        (0..32).filter(|lane| self.has(*lane)).collect()
    }

    /// Returns whether all threads of the block are active, so that no mask in memory is needed.
    fn is_whole_block(self) -> bool {
        self.mask.count_ones() as usize == self.threads
    }
}

/// Returns a small integer, input `nth` of a lane.
fn number(lane: usize, nth: usize) -> i64 {
    (lane * lane * 5 + lane * 3 + nth * 7) as i64 % 11 - 4
}

/// Returns the bits of a small integer as a value of a type.
fn bits(ty: Type, number: i64) -> u64 {
    match ty {
        Type::Bool => u64::from(number > 0),
        Type::F16 => f16::from_f64(number as f64).to_bits().into(),
        Type::F32 => (number as f32).to_bits().into(),
        Type::F64 => (number as f64).to_bits(),
        _ => number as u64 & (u64::MAX >> (64 - ty.bits())),
    }
}

/// Loads input `nth` of a lane; each one has 8 bytes.
fn load_input(b: &mut Builder, ty: Type, lane: Value, nth: u32) -> Value {
    let stored = if ty == Type::Bool { Type::U32 } else { ty };
    let place = Place::new(AddressSpace::Binding(1), Some(lane), 128, 8 * nth);
    let value = b.load(stored, place, 1)[0];
    if ty == Type::Bool { b.convert(ty, value) } else { value }
}

fn store_result(b: &mut Builder, lane: Value, nth: u32, value: Value) {
    let ty = b.ty(value);
    let value = if ty == Type::Bool { b.convert(Type::U32, value) } else { value };
    b.store(Place::new(AddressSpace::Binding(0), Some(lane), 32, 8 * nth), vec![value]);
}

/// Returns a kernel whose active lanes execute `body`.
fn kernel(active: ActiveLanes, body: impl FnOnce(&mut Builder, Value)) -> Kir {
    let mut b = Builder::new("kernel", [active.threads as u32, 1, 1]);
    b.buffer(Access::ReadWrite);
    b.buffer(Access::Read);
    b.buffer(Access::Read);
    let lane = b.builtin(Builtin::LocalId(0));
    if active.is_whole_block() {
        body(&mut b, lane);
    } else {
        let flag = b.load(Type::U32, Place::new(AddressSpace::Binding(2), Some(lane), 4, 0), 1)[0];
        let is_active = b.convert(Type::Bool, flag);
        b.if_then(is_active, |b| body(b, lane));
    }
    b.finish()
}

/// Executes a kernel on the inputs of each lane. Returns the four results of each lane, zero for
/// inactive ones.
fn run(
    kir: &Kir,
    target: Target,
    active: ActiveLanes,
    input: impl Fn(usize, usize) -> u64,
) -> Vec<[u64; 4]> {
    let mut memory = vec![0; 3 * BUFFER];
    for lane in 0..32 {
        for nth in 0..16 {
            let at = BUFFER + lane * 128 + nth * 8;
            memory[at..at + 8].copy_from_slice(&input(lane, nth).to_le_bytes());
        }
        memory[2 * BUFFER + 4 * lane] = active.has(lane).into();
    }
    Warp::run(&support::lines(kir, target), &mut memory, active.threads);
    let word = |at: usize| u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes"));
    (0..32).map(|lane| [0, 8, 16, 24].map(|at| word(lane * 32 + at))).collect()
}

const TARGETS: [Target; 2] = [Target::SM_75, Target::SM_90];

fn combine(op: Reduction, ty: Type, values: &[i64]) -> i64 {
    let as_input = |number: i64| if ty == Type::Bool { i64::from(number > 0) } else { number };
    let values = values.iter().map(|value| as_input(*value));
    match op {
        Reduction::Add => values.sum(),
        Reduction::Mul => values.fold(1, i64::wrapping_mul),
        Reduction::Min => values.min().unwrap_or(i64::MAX),
        Reduction::Max => values.max().unwrap_or(i64::MIN),
        Reduction::And => values.fold(if ty == Type::Bool { 1 } else { -1 }, |x, y| x & y),
        Reduction::Or => values.fold(0, |x, y| x | y),
        Reduction::Xor => values.fold(0, |x, y| x ^ y),
    }
}

/// Returns the identity element of minimum and maximum.
fn identity(op: Reduction, ty: Type) -> Option<u64> {
    let (ones, top) = (u64::MAX >> (64 - ty.bits()), 1 << (ty.bits() - 1));
    let infinity = bits_of_infinity(ty);
    match op {
        Reduction::Min if ty.is_float() => Some(infinity),
        Reduction::Max if ty.is_float() => Some(infinity | top),
        Reduction::Min if ty.is_signed() => Some(ones >> 1),
        Reduction::Max if ty.is_signed() => Some(top),
        Reduction::Min => Some(ones),
        Reduction::Max => Some(0),
        _ => None,
    }
}

fn bits_of_infinity(ty: Type) -> u64 {
    match ty {
        Type::F16 => f16::INFINITY.to_bits().into(),
        Type::F32 => f32::INFINITY.to_bits().into(),
        _ => f64::INFINITY.to_bits(),
    }
}

fn assert_reduction(op: Reduction, group: GroupOperation, ty: Type) {
    // Products of floats must be exact, so they have few factors other than 1. Inputs of unsigned
    // types are not negative.
    let input = |lane: usize| match op {
        Reduction::Mul if ty.is_float() => 1 + i64::from(lane % 9 == 4),
        _ if ty.is_signed() || ty.is_float() || ty == Type::Bool => number(lane, 0),
        _ => number(lane, 0) + 4,
    };
    for active in ACTIVE_LANES {
        let kir = kernel(active, |b, lane| {
            let value = load_input(b, ty, lane, 0);
            let result = b.subgroup(SubgroupOp::Reduce { op, group, value });
            store_result(b, lane, 0, result);
        });
        // The targets only differ where the newer one has `redux.sync`.
        let has_redux = group == GroupOperation::Reduce && ty.is_integer() && ty.size() < 8;
        for target in &TARGETS[usize::from(!has_redux)..] {
            let results = run(&kir, *target, active, |lane, _| bits(ty, input(lane)));
            for lane in active.lanes() {
                let contributes = |other: &usize| match group {
                    GroupOperation::Reduce => true,
                    GroupOperation::InclusiveScan => *other <= lane,
                    GroupOperation::ExclusiveScan => *other < lane,
                };
                let values: Vec<i64> =
                    active.lanes().into_iter().filter(contributes).map(input).collect();
                let identity_result = if values.is_empty() { identity(op, ty) } else { None };
                let expected =
                    identity_result.unwrap_or_else(|| bits(ty, combine(op, ty, &values)));
                let context = format!("{op:?} {group:?} {ty} {active:x?} {target} lane {lane}");
                assert_eq!(results[lane][0], expected, "{context}");
            }
        }
    }
}

#[test]
fn reductions_and_scans_skip_inactive_lanes() {
    use Reduction::{Add, And, Max, Min, Mul, Or, Xor};
    for ty in Type::ALL {
        let ops: &[Reduction] = match ty {
            Type::Bool => &[And, Or, Xor],
            _ if ty.is_float() => &[Add, Mul, Min, Max],
            _ => &[Add, Mul, Min, Max, And, Or, Xor],
        };
        for op in ops {
            for group in [
                GroupOperation::Reduce,
                GroupOperation::InclusiveScan,
                GroupOperation::ExclusiveScan,
            ] {
                assert_reduction(*op, group, ty);
            }
        }
    }
}

/// A shuffle: its source, and the reference for the source lane of a lane and an operand.
type ShuffleCase = (fn(Value) -> ShuffleSource, fn(i64, i64) -> i64);

#[test]
fn shuffles_read_the_intended_lane() {
    let sources: [ShuffleCase; 7] = [
        (ShuffleSource::Lane, |_, by| by % 32),
        (ShuffleSource::Xor, |lane, by| lane ^ (by % 32)),
        (ShuffleSource::Up, |lane, by| lane - by),
        (ShuffleSource::Down, |lane, by| lane + by),
        (ShuffleSource::QuadLane, |lane, by| lane & !3 | by & 3),
        (|_| ShuffleSource::QuadXor(1), |lane, _| lane ^ 1),
        (|_| ShuffleSource::QuadXor(3), |lane, _| lane ^ 3),
    ];
    for ty in Type::ALL {
        for (make, from) in sources {
            for active in ACTIVE_LANES {
                let kir = kernel(active, |b, lane| {
                    let by = load_input(b, Type::U32, lane, 1);
                    let value = load_input(b, ty, lane, 0);
                    let result = b.subgroup(SubgroupOp::Shuffle { source: make(by), value });
                    store_result(b, lane, 0, result);
                });
                let by = |lane: usize| (lane as i64 * 7 + 3) % 32;
                let input = |lane: usize, nth: usize| match nth {
                    0 => bits(ty, number(lane, 3)),
                    _ => by(lane) as u64,
                };
                let results = run(&kir, Target::SM_80, active, input);
                for lane in active.lanes() {
                    let from = from(lane as i64, by(lane));
                    let source_lane =
                        usize::try_from(from).ok().filter(|n| *n < 32 && active.has(*n));
                    if let Some(source_lane) = source_lane {
                        assert_eq!(
                            results[lane][0],
                            input(source_lane, 0),
                            "{ty} {active:x?} lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn ballots_skip_inactive_lanes() {
    for active in ACTIVE_LANES {
        let kir = kernel(active, |b, lane| {
            let value = load_input(b, Type::Bool, lane, 0);
            for word in [0, 3] {
                let votes = b.subgroup(SubgroupOp::Ballot { value, word });
                store_result(b, lane, word.into(), votes);
            }
            let value = load_input(b, Type::U16, lane, 1);
            let first = b.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value });
            store_result(b, lane, 1, first);
        });
        let input = |lane: usize, nth: usize| bits(Type::U32, (number(lane, nth) > 0).into());
        let results = run(&kir, Target::SM_80, active, input);
        let lanes = active.lanes();
        let votes = lanes.iter().map(|lane| input(*lane, 0) << lane).sum::<u64>();
        for lane in &lanes {
            assert_eq!(results[*lane], [votes, input(lanes[0], 1), 0, 0], "{active:x?}");
        }
    }
}

/// Returns a lane's elements of `c + times * (a * b)`. The lanes hold `a`, a 16 × 8 matrix, by
/// rows, and `b`, an 8 × 8 matrix, by columns.
fn reference_product(active: ActiveLanes, times: usize, lane: usize) -> [i64; 4] {
    let input = |lane: usize, nth| if active.has(lane) { number(lane, nth) } else { 0 };
    std::array::from_fn(|nth| {
        let (row, column) = (lane / 4, lane % 4 * 2 + nth % 2);
        let left = |k: usize| input(row * 4 + k / 2, nth / 2 * 2 + k % 2);
        let right = |k: usize| input(column * 4 + k / 2, 4 + k % 2);
        let product: i64 = (0..8).map(|k| left(k) * right(k)).sum();
        number(lane, 6 + nth) + times as i64 * product
    })
}

fn assert_product(active: ActiveLanes, operand: Type, accumulator: Type, times: usize) {
    let kir = kernel(active, |b, lane| {
        let a = [0, 1, 2, 3].map(|nth| load_input(b, operand, lane, nth));
        let right = [4, 5].map(|nth| load_input(b, operand, lane, nth));
        let mut c = [6, 7, 8, 9].map(|nth| load_input(b, accumulator, lane, nth));
        for _ in 0..times {
            c = b.multiply_fragments(a, right, c).try_into().expect("there are four");
        }
        for (nth, c) in (0..).zip(c) {
            store_result(b, lane, nth, c);
        }
    });
    let input = |lane: usize, nth: usize| {
        bits(if nth < 6 { operand } else { accumulator }, number(lane, nth))
    };
    for target in TARGETS {
        let results = run(&kir, target, active, input);
        for lane in active.lanes() {
            let expected =
                reference_product(active, times, lane).map(|number| bits(accumulator, number));
            assert_eq!(
                results[lane], expected,
                "{active:x?} {operand} {accumulator} {times} {target} lane {lane}"
            );
        }
    }
}

#[test]
fn matrix_products_match_scalar_products() {
    for active in ACTIVE_LANES {
        for (operand, accumulator) in
            [(Type::F16, Type::F16), (Type::F16, Type::F32), (Type::F32, Type::F32)]
        {
            (1..=3).for_each(|times| assert_product(active, operand, accumulator, times));
        }
    }
}
