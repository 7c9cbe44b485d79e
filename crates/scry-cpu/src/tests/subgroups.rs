//! Tests of subgroup operations with all and with some active lanes.

use scry_ir::kir::{
    Access, BinaryOp, Builder, Builtin, GroupOperation, Reduction, ShuffleSource, SubgroupOp, Type,
    Value,
};

use super::support::{BuilderExt, TestLaunch, bytes, noise, words};
use crate::{Machine, SUBGROUP_SIZE};

const SHAPES: [[u32; 3]; 4] = [[64, 1, 1], [7, 3, 2], [33, 1, 1], [8, 8, 1]];
const GROUPS: usize = 3;

/// Executes an operation in all invocations if `all`, else in those whose pseudo-random number is
/// at least 2^30. Returns the result of each invocation, 7 for inactive ones.
fn exchange(shape: [u32; 3], op: impl Fn(&mut Builder, Value) -> Value, all: bool) -> Vec<u32> {
    let mut b = Builder::new("subgroups", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let number = b.global_index();
    let noise_value = b.load_word(input, number);
    let condition = b.compare(BinaryOp::Ge, noise_value, if all { 0 } else { 1 << 30 });
    b.if_then(condition, |b| {
        let result = op(b, noise_value);
        let result = b.convert(Type::U32, result);
        b.store_word(out, number, result);
    });
    let kir = b.finish();
    let size = shape.iter().product::<u32>() as usize * GROUPS;
    let launch =
        TestLaunch::new([GROUPS as u32, 1, 1], &[bytes(&noise(size)), bytes(&vec![7; size])]);
    words(&launch.run(&kir, &Machine::new(2))[1])
}

/// Executes an operation in all invocations.
fn exchange_all(shape: [u32; 3], op: impl Fn(&mut Builder, Value) -> Value) -> Vec<u32> {
    exchange(shape, op, true)
}

/// Compares the result of each active invocation with `expected`, which is called with the `(lane,
/// value)` pairs of the subgroup's active lanes and the invocation's index among them.
fn assert_exchange(
    op: impl Fn(&mut Builder, Value) -> Value,
    expected: impl Fn(&[(usize, u32)], usize) -> Option<u32>,
) {
    for shape in SHAPES {
        let size = shape.iter().product::<u32>() as usize;
        for all in [true, false] {
            let out = exchange(shape, &op, all);
            let data = noise(size * GROUPS);
            for (out, data) in out.chunks(size).zip(data.chunks(size)) {
                let subgroup = SUBGROUP_SIZE as usize;
                for (out, data) in out.chunks(subgroup).zip(data.chunks(subgroup)) {
                    let active = data.iter().copied().enumerate();
                    let active: Vec<_> = active.filter(|(_, v)| all || *v >= 1 << 30).collect();
                    for (position, (lane, _)) in active.iter().enumerate() {
                        if let Some(expected) = expected(&active, position) {
                            assert_eq!(out[*lane], expected, "{shape:?}, {all}, lane {lane}");
                        }
                    }
                    let inactive =
                        (0..data.len()).filter(|lane| !active.iter().any(|a| a.0 == *lane));
                    inactive.for_each(|lane| assert_eq!(out[lane], 7));
                }
            }
        }
    }
}

fn reduce(op: Reduction, group: GroupOperation) -> impl Fn(&mut Builder, Value) -> Value {
    move |b, value| b.subgroup(SubgroupOp::Reduce { op, group, value })
}

#[test]
fn reductions_use_active_lanes_only() {
    type Combine = fn(u32, u32) -> u32;
    let operations: [(Reduction, Combine, u32); 6] = [
        (Reduction::Add, u32::wrapping_add, 0),
        (Reduction::Min, u32::min, u32::MAX),
        (Reduction::Max, u32::max, 0),
        (Reduction::And, |a, b| a & b, u32::MAX),
        (Reduction::Or, |a, b| a | b, 0),
        (Reduction::Xor, |a, b| a ^ b, 0),
    ];
    for (op, combine, identity) in operations {
        let fold = |of: &[(usize, u32)]| of.iter().fold(identity, |a, b| combine(a, b.1));
        assert_exchange(reduce(op, GroupOperation::Reduce), |active, _| Some(fold(active)));
    }
    let fold = |of: &[(usize, u32)]| of.iter().fold(0u32, |a, b| a.wrapping_add(b.1));
    let product = |of: &[(usize, u32)]| of.iter().fold(1u32, |a, b| a.wrapping_mul(b.1));
    assert_exchange(reduce(Reduction::Add, GroupOperation::InclusiveScan), |all, n| {
        Some(fold(&all[..=n]))
    });
    assert_exchange(reduce(Reduction::Add, GroupOperation::ExclusiveScan), |all, n| {
        Some(fold(&all[..n]))
    });
    assert_exchange(reduce(Reduction::Mul, GroupOperation::InclusiveScan), |all, n| {
        Some(product(&all[..=n]))
    });
    assert_exchange(reduce(Reduction::Mul, GroupOperation::ExclusiveScan), |all, n| {
        Some(product(&all[..n]))
    });
}

#[test]
fn ballots_count_active_lanes_only() {
    let odd = |b: &mut Builder, value: Value| {
        let one = b.u32(1);
        let low = b.binary(BinaryOp::And, value, one);
        b.compare(BinaryOp::Eq, low, 1)
    };
    for word in 0..4u8 {
        let ballot = |b: &mut Builder, value: Value| {
            let value = odd(b, value);
            b.subgroup(SubgroupOp::Ballot { value, word })
        };
        assert_exchange(ballot, |active, _| {
            let odd = active.iter().filter(|(_, value)| value & 1 == 1);
            Some(if word == 0 { odd.map(|(lane, _)| 1u32 << lane).sum() } else { 0 })
        });
    }
    for (op, holds) in [(Reduction::And, false), (Reduction::Or, true)] {
        let vote = |b: &mut Builder, value: Value| {
            let value = odd(b, value);
            b.subgroup(SubgroupOp::Reduce { op, group: GroupOperation::Reduce, value })
        };
        assert_exchange(vote, |active, _| {
            let (any, all) = (
                active.iter().any(|(_, value)| value & 1 == 1),
                active.iter().all(|(_, value)| value & 1 == 1),
            );
            Some(u32::from(if holds { any } else { all }))
        });
    }
}

#[test]
fn broadcast_first_uses_lowest_active_lane() {
    let first = |b: &mut Builder, value| {
        b.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::First, value })
    };
    assert_exchange(first, |active, _| Some(active[0].1));
}

#[test]
fn shuffles_read_the_given_lane() {
    let value_of = |active: &[(usize, u32)], lane: Option<usize>| {
        active.iter().find(|(number, _)| Some(*number) == lane).map(|(_, value)| *value)
    };
    for by in [0, 1, 3, 17, 31] {
        let shuffle = |source: fn(Value) -> ShuffleSource| {
            move |b: &mut Builder, value: Value| {
                let by = b.u32(by as u32);
                b.subgroup(SubgroupOp::Shuffle { source: source(by), value })
            }
        };
        assert_exchange(shuffle(ShuffleSource::Lane), |active, _| value_of(active, Some(by)));
        assert_exchange(shuffle(ShuffleSource::Xor), |active, n| {
            value_of(active, Some(active[n].0 ^ by))
        });
        assert_exchange(shuffle(ShuffleSource::Up), |active, n| {
            value_of(active, active[n].0.checked_sub(by))
        });
        assert_exchange(shuffle(ShuffleSource::Down), |active, n| {
            value_of(active, Some(active[n].0 + by))
        });
    }
    for by in 0..4usize {
        let lane = move |b: &mut Builder, value: Value| {
            let by = b.u32(by as u32);
            b.subgroup(SubgroupOp::Shuffle { source: ShuffleSource::QuadLane(by), value })
        };
        assert_exchange(lane, |active, n| value_of(active, Some(active[n].0 / 4 * 4 + by)));
        if by > 0 {
            let swap = move |b: &mut Builder, value: Value| {
                let source = ShuffleSource::QuadXor(by as u8);
                b.subgroup(SubgroupOp::Shuffle { source, value })
            };
            assert_exchange(swap, |active, n| value_of(active, Some(active[n].0 ^ by)));
        }
    }
}

#[test]
fn subgroup_ids_restart_in_each_workgroup() {
    assert_exchange(|b, _| b.builtin(Builtin::SubgroupLane), |all, n| Some(all[n].0 as u32));
    assert_exchange(|b, _| b.builtin(Builtin::SubgroupSize), |_, _| Some(SUBGROUP_SIZE));
    for shape in SHAPES {
        let size = shape.iter().product::<u32>();
        let out = exchange_all(shape, |b, _| b.builtin(Builtin::SubgroupId));
        assert!(out.iter().zip(0..).all(|(id, number)| *id == number % size / SUBGROUP_SIZE));
        let out = exchange_all(shape, |b, _| b.builtin(Builtin::SubgroupCount));
        assert!(out.iter().all(|count| *count == size.div_ceil(SUBGROUP_SIZE)));
    }
}
