//! Subgroup exchange and matrix products, for all sets of active lanes.

use half::f16;
use scry_ir::kir::{
    AddressSpace, Builder, Builtin, Extent, Kir, Place, Reduction, ShuffleSource, SubgroupOp, Type,
    Value,
};

use super::support;
use super::warp::{BUFFER, Warp};
use crate::target::Target;

/// The active threads: all of a block of some size, or those selected by a mask in memory.
#[derive(Debug, Clone, Copy)]
struct Present {
    threads: usize,
    mask: u32,
}

const PRESENT: [Present; 7] = [
    Present { threads: 32, mask: u32::MAX },
    Present { threads: 20, mask: (1 << 20) - 1 },
    Present { threads: 1, mask: 1 },
    Present { threads: 32, mask: 0x5a5a_0ff3 },
    Present { threads: 32, mask: 0x8000_0000 },
    Present { threads: 32, mask: 0xffff_fffe },
    Present { threads: 27, mask: 0x0213_7c00 },
];

impl Present {
    fn has(self, lane: usize) -> bool {
        self.mask >> lane & 1 == 1
    }

    fn lanes(self) -> Vec<usize> {
        (0..32).filter(|lane| self.has(*lane)).collect()
    }

    /// Returns whether the mask is a whole block, so that no mask in memory is needed.
    fn is_whole(self) -> bool {
        self.mask.count_ones() as usize == self.threads
    }
}

/// The number of a lane: small and whole.
fn number(lane: usize, nth: usize) -> i64 {
    (lane * lane * 5 + lane * 3 + nth * 7) as i64 % 11 - 4
}

/// The bits of a small number.
fn bits(ty: Type, number: i64) -> u64 {
    match ty {
        Type::Bool => u64::from(number > 0),
        Type::F16 => f16::from_f64(number as f64).to_bits().into(),
        Type::F32 => (number as f32).to_bits().into(),
        Type::F64 => (number as f64).to_bits(),
        _ => number as u64 & (u64::MAX >> (64 - ty.bits())),
    }
}

/// Reads what a lane holds: each number has 8 bytes.
fn read(b: &mut Builder, ty: Type, lane: Value, nth: u32) -> Value {
    let stored = if ty == Type::Bool { Type::U32 } else { ty };
    let place = Place::new(AddressSpace::Binding(1), Some(lane), 128, 8 * nth);
    let value = b.load(stored, place, 1)[0];
    if ty == Type::Bool { b.convert(ty, value) } else { value }
}

fn write(b: &mut Builder, lane: Value, nth: u32, value: Value) {
    let ty = b.ty(value);
    let value = if ty == Type::Bool { b.convert(Type::U32, value) } else { value };
    b.store(Place::new(AddressSpace::Binding(0), Some(lane), 32, 8 * nth), vec![value]);
}

/// A kernel in which those that are present do something.
fn kernel(present: Present, step: impl FnOnce(&mut Builder, Value)) -> Kir {
    let mut b = Builder::new("kernel", [present.threads as u32, 1, 1]);
    b.buffer(true);
    b.buffer(false);
    b.buffer(false);
    let lane = b.builtin(Builtin::LocalId(0));
    if present.is_whole() {
        step(&mut b, lane);
    } else {
        let flag = b.load(Type::U32, Place::new(AddressSpace::Binding(2), Some(lane), 4, 0), 1)[0];
        let takes_part = b.convert(Type::Bool, flag);
        b.if_then(takes_part, |b| step(b, lane));
    }
    b.finish()
}

/// Returns the words written by each thread, four each; inactive threads write nothing.
fn run(
    kir: &Kir,
    target: Target,
    present: Present,
    held: impl Fn(usize, usize) -> u64,
) -> Vec<[u64; 4]> {
    let mut memory = vec![0; 3 * BUFFER];
    for lane in 0..32 {
        for nth in 0..16 {
            let at = BUFFER + lane * 128 + nth * 8;
            memory[at..at + 8].copy_from_slice(&held(lane, nth).to_le_bytes());
        }
        memory[2 * BUFFER + 4 * lane] = present.has(lane).into();
    }
    Warp::run(&support::lines(kir, target), &mut memory, present.threads);
    let word = |at: usize| u64::from_le_bytes(memory[at..at + 8].try_into().expect("eight bytes"));
    (0..32).map(|lane| [0, 8, 16, 24].map(|at| word(lane * 32 + at))).collect()
}

const TARGETS: [Target; 2] = [Target::SM_75, Target::SM_90];

fn combine(op: Reduction, ty: Type, values: &[i64]) -> i64 {
    let bool_or = |number: i64| if ty == Type::Bool { i64::from(number > 0) } else { number };
    let values = values.iter().map(|value| bool_or(*value));
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

fn check_reduction(op: Reduction, extent: Extent, ty: Type) {
    // Products of floats stay small, and unsigned numbers are no negative ones.
    let held = |lane: usize| match op {
        Reduction::Mul if ty.is_float() => 1 + i64::from(lane % 9 == 4),
        _ if ty.is_signed() || ty.is_float() || ty == Type::Bool => number(lane, 0),
        _ => number(lane, 0) + 4,
    };
    for present in PRESENT {
        let kir = kernel(present, |b, lane| {
            let value = read(b, ty, lane, 0);
            let result = b.subgroup(SubgroupOp::Reduce { op, extent, value });
            write(b, lane, 0, result);
        });
        // Newer targets differ in what one instruction can do.
        let one = extent == Extent::All && ty.is_integer() && ty.size() < 8;
        for target in &TARGETS[usize::from(!one)..] {
            let got = run(&kir, *target, present, |lane, _| bits(ty, held(lane)));
            for lane in present.lanes() {
                let counts = |other: &usize| match extent {
                    Extent::All => true,
                    Extent::Inclusive => *other <= lane,
                    Extent::Exclusive => *other < lane,
                };
                let values: Vec<i64> =
                    present.lanes().into_iter().filter(counts).map(held).collect();
                let nothing = if values.is_empty() { identity(op, ty) } else { None };
                let want = nothing.unwrap_or_else(|| bits(ty, combine(op, ty, &values)));
                let what = format!("{op:?} {extent:?} {ty} {present:x?} {target} lane {lane}");
                assert_eq!(got[lane][0], want, "{what}");
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
            for extent in [Extent::All, Extent::Inclusive, Extent::Exclusive] {
                check_reduction(*op, extent, ty);
            }
        }
    }
}

/// A shuffle by a constant: its source, and the source lane.
type From = (fn(Value) -> ShuffleSource, fn(i64, i64) -> i64);

#[test]
fn shuffles_read_the_intended_lane() {
    let sources: [From; 7] = [
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
            for present in PRESENT {
                let kir = kernel(present, |b, lane| {
                    let by = read(b, Type::U32, lane, 1);
                    let value = read(b, ty, lane, 0);
                    let result = b.subgroup(SubgroupOp::Shuffle { source: make(by), value });
                    write(b, lane, 0, result);
                });
                let by = |lane: usize| (lane as i64 * 7 + 3) % 32;
                let held = |lane: usize, nth: usize| match nth {
                    0 => bits(ty, number(lane, 3)),
                    _ => by(lane) as u64,
                };
                let got = run(&kir, Target::SM_80, present, held);
                for lane in present.lanes() {
                    let from = from(lane as i64, by(lane));
                    let there = usize::try_from(from).ok().filter(|n| *n < 32 && present.has(*n));
                    if let Some(there) = there {
                        assert_eq!(got[lane][0], held(there, 0), "{ty} {present:x?} lane {lane}");
                    }
                }
            }
        }
    }
}

#[test]
fn ballots_skip_inactive_lanes() {
    for present in PRESENT {
        let kir = kernel(present, |b, lane| {
            let value = read(b, Type::Bool, lane, 0);
            for word in [0, 3] {
                let votes = b.subgroup(SubgroupOp::Ballot { value, word });
                write(b, lane, word.into(), votes);
            }
            let value = read(b, Type::U16, lane, 1);
            let first = b.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value });
            write(b, lane, 1, first);
        });
        let held = |lane: usize, nth: usize| bits(Type::U32, (number(lane, nth) > 0).into());
        let got = run(&kir, Target::SM_80, present, held);
        let lanes = present.lanes();
        let votes = lanes.iter().map(|lane| held(*lane, 0) << lane).sum::<u64>();
        for lane in &lanes {
            assert_eq!(got[*lane], [votes, held(lanes[0], 1), 0, 0], "{present:x?}");
        }
    }
}

/// Returns a thread's part of a chain of accumulated products: lanes hold a 16 × 8 matrix, and an 8
/// × 8 one by columns.
fn products(present: Present, times: usize, lane: usize) -> [i64; 4] {
    let held = |lane: usize, nth| if present.has(lane) { number(lane, nth) } else { 0 };
    std::array::from_fn(|nth| {
        let (row, column) = (lane / 4, lane % 4 * 2 + nth % 2);
        let left = |k: usize| held(row * 4 + k / 2, nth / 2 * 2 + k % 2);
        let right = |k: usize| held(column * 4 + k / 2, 4 + k % 2);
        let product: i64 = (0..8).map(|k| left(k) * right(k)).sum();
        number(lane, 6 + nth) + times as i64 * product
    })
}

fn check_product(present: Present, operand: Type, sum: Type, times: usize) {
    let kir = kernel(present, |b, lane| {
        let a = [0, 1, 2, 3].map(|nth| read(b, operand, lane, nth));
        let right = [4, 5].map(|nth| read(b, operand, lane, nth));
        let mut c = [6, 7, 8, 9].map(|nth| read(b, sum, lane, nth));
        for _ in 0..times {
            c = b.multiply_fragments(a, right, c).try_into().expect("there are four");
        }
        for (nth, c) in (0..).zip(c) {
            write(b, lane, nth, c);
        }
    });
    let held =
        |lane: usize, nth: usize| bits(if nth < 6 { operand } else { sum }, number(lane, nth));
    for target in TARGETS {
        let got = run(&kir, target, present, held);
        for lane in present.lanes() {
            let want = products(present, times, lane).map(|number| bits(sum, number));
            assert_eq!(
                got[lane], want,
                "{present:x?} {operand} {sum} {times} {target} lane {lane}"
            );
        }
    }
}

#[test]
fn matrix_products_match_scalar_products() {
    for present in PRESENT {
        for (operand, sum) in
            [(Type::F16, Type::F16), (Type::F16, Type::F32), (Type::F32, Type::F32)]
        {
            (1..=3).for_each(|times| check_product(present, operand, sum, times));
        }
    }
}
