//! Tests of atomic operations, by one workgroup and by several threads.

use scry_ir::kir::{Access, AddressSpace, AtomicOp, Builder, Kir, Place, Type, Value};

use super::support::{BuilderExt, TestLaunch, bytes, noise, words};
use crate::Machine;

fn kernel(shape: [u32; 3], fill: impl FnOnce(&mut Builder)) -> Kir {
    let mut b = Builder::new("atomics", shape);
    b.buffer(Access::ReadWrite);
    fill(&mut b);
    b.finish()
}

/// Returns the first element of the buffer.
fn first_element(b: &mut Builder, ty: Type) -> Place {
    let zero = b.u32(0);
    Place::new(AddressSpace::Binding(0), Some(zero), ty.size(), 0)
}

/// Executes `body` in a loop, so that the kernel has no cost estimate and runs on several threads.
fn in_a_loop(b: &mut Builder, iterations: u32, body: impl FnOnce(&mut Builder)) {
    let count = b.var(Type::U32);
    b.finite_loop(|b, label| {
        let iteration = b.get(count);
        let done = b.compare(scry_ir::kir::BinaryOp::Ge, iteration, iterations);
        b.if_then(done, |b| b.break_to(label));
        body(b);
        let one = b.u32(1);
        let next = b.add(iteration, one);
        b.set(count, next);
    });
}

#[test]
fn atomic_counters_are_exact_across_threads() {
    let kir = kernel([33, 1, 1], |b| {
        in_a_loop(b, 5, |b| {
            let place = first_element(b, Type::U32);
            let one = b.u32(1);
            b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
        });
    });
    for threads in [1, 2, 4] {
        let launch = TestLaunch::new([100, 3, 1], &[bytes(&[11])]);
        let out = words(&launch.run(&kir, &Machine::new(threads))[0]);
        assert_eq!(out, [11 + 33 * 5 * 300], "{threads} threads");
    }
}

#[test]
fn atomic_add_returns_unique_values() {
    let kir = kernel([64, 1, 1], |b| {
        in_a_loop(b, 1, |b| {
            let place = first_element(b, Type::U32);
            let one = b.u32(1);
            let old = b.atomic(Type::U32, AtomicOp::Add, place, Some(one), None);
            let slot = b.add(old, one);
            let before = b.load_word(0, slot);
            let after = b.add(before, one);
            b.store_word(0, slot, after);
        });
    });
    let mut expected = vec![1; 64 * 50 + 1];
    expected[0] = 64 * 50;
    let launch = TestLaunch::new([50, 1, 1], &[bytes(&vec![0; expected.len()])]);
    assert_eq!(words(&launch.run(&kir, &Machine::new(3))[0]), expected);
}

#[test]
fn compare_exchange_implements_a_lock() {
    // Each workgroup of one invocation acquires the lock, adds 1 by a load and a store instead of
    // an atomic addition, and releases the lock.
    let kir = kernel([1, 1, 1], |b| {
        let [zero, one] = [0, 1].map(|value| b.u32(value));
        b.loop_(|b, label| {
            let op = AtomicOp::CompareExchange;
            let lock = first_element(b, Type::U32);
            let old = b.atomic(Type::U32, op, lock, Some(one), Some(zero));
            let acquired = b.compare(scry_ir::kir::BinaryOp::Eq, old, 0);
            b.if_then(acquired, |b| {
                let counter = second_element(b);
                let sum = b.atomic(Type::U32, AtomicOp::Load, counter, None, None);
                let sum = b.add(sum, one);
                b.atomic(Type::U32, AtomicOp::Store, counter, Some(sum), None);
                b.atomic(Type::U32, AtomicOp::Exchange, lock, Some(zero), None);
                b.break_to(label);
            });
        });
    });
    let launch = TestLaunch::new([2000, 1, 1], &[bytes(&[0, 0])]);
    let out = words(&launch.run(&kir, &Machine::new(1))[0]);
    assert_eq!(out, [0, 2000]);
    // Atomics are relaxed, so that the lock orders no accesses between threads: the counter may
    // miss additions.
    let out = words(&launch.run(&kir, &Machine::new(2))[0]);
    assert!(out[0] == 0 && (1..=2000).contains(&out[1]), "{out:?}");
}

/// Returns the second element of the buffer.
fn second_element(b: &mut Builder) -> Place {
    let one = b.u32(1);
    Place::new(AddressSpace::Binding(0), Some(one), 4, 0)
}

#[test]
fn every_atomic_on_every_type() {
    use AtomicOp::{Add, And, CompareExchange, Exchange, Load, Max, Min, Or, Store, Sub, Xor};
    for ty in [Type::U32, Type::I32, Type::U64, Type::I64] {
        for op in [Load, Store, Add, Sub, Min, Max, And, Or, Xor, Exchange, CompareExchange] {
            let kir = kernel([19, 1, 1], |b| {
                let number = b.global_index();
                let place = Place::new(AddressSpace::Binding(0), Some(number), 2 * ty.size(), 0);
                let operand = b.load(ty, place, 2);
                let (value, one): (Value, _) = (operand[1], b.u32(1));
                let bit = b.binary(scry_ir::kir::BinaryOp::And, number, one);
                let is_odd = b.compare(scry_ir::kir::BinaryOp::Eq, bit, 1);
                let compare = b.select(is_odd, operand[0], value);
                let value = (op != Load).then_some(value);
                let compare = (op == CompareExchange).then_some(compare);
                let old = b.atomic(ty, op, place, value, compare);
                let next =
                    Place::new(AddressSpace::Binding(0), Some(number), 2 * ty.size(), ty.size());
                // The result of a store is undefined.
                let stored = if op == Store { operand[0] } else { old };
                b.store(next, vec![stored]);
            });
            let size = 19 * 3 * 2 * ty.size() as usize / 4;
            TestLaunch::new([3, 1, 1], &[bytes(&noise(size))]).assert_agrees(&kir);
        }
    }
}

#[test]
fn atomics_run_in_invocation_order() {
    for (space, in_workgroup) in [("storage", false), ("workgroup", true)] {
        let kir = kernel([7, 3, 2], |b| {
            let memory = if in_workgroup {
                b.workgroup_array(Type::U32, 1)
            } else {
                AddressSpace::Binding(0)
            };
            let index = b.local_index();
            let one = b.u32(1);
            let bit = b.binary(scry_ir::kir::BinaryOp::And, index, one);
            let is_odd = b.compare(scry_ir::kir::BinaryOp::Eq, bit, 1);
            b.if_then(is_odd, |b| {
                let place = Place::new(memory, None, 4, 0);
                let old = b.atomic(Type::U32, AtomicOp::Add, place, Some(index), None);
                let next = b.add(index, one);
                b.store_word(0, next, old);
            });
        });
        let launch = TestLaunch::new([1, 1, 1], &[bytes(&[0; 43])]);
        let mut expected = vec![0; 43];
        let mut sum = 0;
        for index in (1..42).step_by(2) {
            expected[index + 1] = sum;
            sum += index as u32;
        }
        expected[0] = if in_workgroup { 0 } else { sum };
        assert_eq!(words(&launch.run(&kir, &Machine::new(1))[0]), expected, "{space}");
    }
}

#[test]
fn atomic_float_sums_are_exact() {
    let kir = kernel([64, 1, 1], |b| {
        in_a_loop(b, 2, |b| {
            let place = first_element(b, Type::F32);
            let half = b.constant(scry_ir::kir::Const::f32(0.5));
            b.atomic(Type::F32, AtomicOp::Add, place, Some(half), None);
        });
    });
    let launch = TestLaunch::new([40, 1, 1], &[bytes(&[1f32.to_bits()])]);
    let out = words(&launch.run(&kir, &Machine::new(2))[0]);
    assert_eq!(f32::from_bits(out[0]), 1.0 + 64.0 * 40.0);
}

#[test]
fn atomics_out_of_bounds_change_nothing() {
    let kir = kernel([20, 1, 1], |b| {
        let number = b.global_index();
        let place = Place::new(AddressSpace::Binding(0), Some(number), 4, 0);
        b.atomic(Type::U32, AtomicOp::Add, place, Some(number), None);
    });
    TestLaunch::new([2, 1, 1], &[bytes(&noise(13))]).assert_agrees(&kir);
}
