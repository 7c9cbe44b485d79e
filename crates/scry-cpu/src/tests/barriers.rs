//! Tests of workgroups whose invocations communicate through workgroup memory.

use scry_ir::kir::{Access, AddressSpace, Barrier, BinaryOp, Builder, Label, Place, Type, Value};

use super::support::{BuilderExt, SHAPES, TestLaunch, bytes, noise, words};
use crate::Machine;

/// Runs a kernel that reverses the words of each workgroup through workgroup memory. Invocations
/// for which `is_active` is false return before the barrier.
fn run_reverse(
    shape: [u32; 3],
    is_active: impl Fn(&mut Builder, Value) -> Option<Value>,
) -> Vec<u32> {
    let size = shape.iter().product::<u32>();
    let mut b = Builder::new("reverse", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let shared = b.workgroup_array(Type::U32, size);
    let (index, number) = (b.local_index(), b.global_index());
    if let Some(is_active) = is_active(&mut b, index) {
        let inactive = b.not(is_active);
        b.if_then(inactive, |b| b.break_to(Label::KERNEL));
    }
    let value = b.load_word(input, number);
    b.store(Place::new(shared, Some(index), 4, 0), vec![value]);
    b.barrier(Barrier::Workgroup);
    let last = b.u32(size - 1);
    let other = b.binary(BinaryOp::Sub, last, index);
    let value = b.load(Type::U32, Place::new(shared, Some(other), 4, 0), 1)[0];
    b.store_word(out, number, value);
    let kir = b.finish();
    let count = size as usize * 3;
    let launch = TestLaunch::new([3, 1, 1], &[bytes(&noise(count)), bytes(&vec![9; count])]);
    words(&launch.run(&kir, &Machine::new(2))[1])
}

#[test]
fn writes_precede_reads_after_a_barrier() {
    for shape in SHAPES {
        let size = shape.iter().product::<u32>() as usize;
        let expected = noise(3 * size);
        let expected: Vec<_> =
            expected.chunks(size).flat_map(|group| group.iter().rev().copied()).collect();
        assert_eq!(run_reverse(shape, |_, _| None), expected, "{shape:?}");
    }
}

#[test]
fn barriers_ignore_returned_invocations() {
    for shape in [[33, 1, 1], [7, 3, 2], [256, 1, 1]] {
        let size = shape.iter().product::<u32>() as usize;
        let out = run_reverse(shape, |b, index| Some(b.compare(BinaryOp::Lt, index, 20)));
        let input = noise(3 * size);
        for (group, out) in out.chunks(size).enumerate() {
            for (index, found) in out.iter().enumerate() {
                let other = size - 1 - index;
                // Workgroup memory is zero where no invocation has written.
                let expected = if other < 20 { input[group * size + other] } else { 0 };
                assert_eq!(*found, if index < 20 { expected } else { 9 }, "{shape:?}, {index}");
            }
        }
    }
}

#[test]
fn tree_reduction_in_a_loop() {
    for width in [32, 64, 256, 1024] {
        let mut b = Builder::new("sum", [width, 1, 1]);
        let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
        let shared = b.workgroup_array(Type::U32, width);
        let (index, number) = (b.local_index(), b.global_index());
        let value = b.load_word(input, number);
        let own = Place::new(shared, Some(index), 4, 0);
        b.store(own, vec![value]);
        let half = b.var(Type::U32);
        let first = b.u32(width / 2);
        b.set(half, first);
        b.finite_loop(|b, label| {
            b.barrier(Barrier::Workgroup);
            let distance = b.get(half);
            let done = b.compare(BinaryOp::Eq, distance, 0);
            b.if_then(done, |b| b.break_to(label));
            let active = b.binary(BinaryOp::Lt, index, distance);
            b.if_then(active, |b| {
                let other = b.add(index, distance);
                let other = b.load(Type::U32, Place::new(shared, Some(other), 4, 0), 1)[0];
                let mine = b.load(Type::U32, own, 1)[0];
                let sum = b.add(mine, other);
                b.store(own, vec![sum]);
            });
            let one = b.u32(1);
            let next = b.binary(BinaryOp::Shr, distance, one);
            b.set(half, next);
        });
        let is_first = b.compare(BinaryOp::Eq, index, 0);
        let group = b.builtin(scry_ir::kir::Builtin::GroupId(0));
        b.if_then(is_first, |b| {
            let sum = b.load(Type::U32, Place::new(shared, None, 4, 0), 1)[0];
            b.store(Place::new(AddressSpace::Binding(out), Some(group), 4, 0), vec![sum]);
        });
        let kir = b.finish();
        let data = noise(5 * width as usize);
        let launch = TestLaunch::new([5, 1, 1], &[bytes(&data), bytes(&[0; 5])]);
        let sum = |group: &[u32]| group.iter().fold(0u32, |a, b| a.wrapping_add(*b));
        let expected: Vec<_> = data.chunks(width as usize).map(sum).collect();
        for threads in [1, 2] {
            assert_eq!(words(&launch.run(&kir, &Machine::new(threads))[1]), expected, "{width}");
        }
    }
}
