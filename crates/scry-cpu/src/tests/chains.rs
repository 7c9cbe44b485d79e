//! Tests of chains of multiply-adds of every length and end, with all kinds of strides, and with
//! results that overwrite operands. Numbers are small integers, so that nothing is rounded; one
//! test uses fractions, whose rounding depends on the order of operations.

use scry_ir::kir::{Access, AddressSpace, BinaryOp, Builder, Const, Kir, Place, Type, Value};

use super::mul_adds::small;
use super::support::{BuilderExt, SHAPES, TestLaunch};
use crate::code::Step;
use crate::{Code, Machine};

/// How the last multiply-add of a chain uses the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Addend,
    Factor,
    Scaled,
}

const ENDS: [End; 3] = [End::Addend, End::Factor, End::Scaled];

fn load(b: &mut Builder, buffer: u32, index: Value) -> Value {
    b.load(Type::F32, Place::new(AddressSpace::Binding(buffer), Some(index), 4, 0), 1)[0]
}

/// Adds terms of different kinds to `first`, with operands from `next`, and applies `end`.
fn chain(
    b: &mut Builder,
    first: Value,
    mut next: impl FnMut(&mut Builder) -> Value,
    terms: u32,
    end: End,
) -> Value {
    let mut sum = first;
    for term in 0..terms {
        let x = next(b);
        let two = b.constant(Const::f32(2.0));
        sum = match term % 5 {
            0 => b.add(sum, x),
            1 => b.binary(BinaryOp::Sub, sum, x),
            2 => b.fma(two, x, sum),
            3 => {
                let product = b.mul(x, two);
                b.binary(BinaryOp::Sub, sum, product)
            }
            _ => b.add(x, sum),
        };
    }
    let minus = b.constant(Const::f32(-3.0));
    match end {
        End::Addend => sum,
        End::Scaled => b.mul(sum, minus),
        End::Factor => {
            let product = b.mul(minus, sum);
            let x = next(b);
            b.binary(BinaryOp::Sub, x, product)
        }
    }
}

/// Returns the number of stages of the longest chain of a kernel.
fn max_stages(kir: &Kir) -> usize {
    let code = Code::compile(kir).unwrap();
    let stages = code.steps.iter().map(|step| match step {
        Step::Chain(chain) => chain.stages.len(),
        _ => 0,
    });
    stages.max().unwrap_or(0)
}

/// Returns a kernel in which each invocation accesses its element of three buffers, and writes that
/// of the last.
fn elementwise(shape: [u32; 3], terms: u32, end: End) -> Kir {
    elementwise_if(shape, terms, end, false)
}

/// As [`elementwise`]; with `partial`, only some invocations access memory.
fn elementwise_if(shape: [u32; 3], terms: u32, end: End, partial: bool) -> Kir {
    let mut b = Builder::new("elementwise", shape);
    let buffers = [b.buffer(Access::Read), b.buffer(Access::Read), b.buffer(Access::ReadWrite)];
    let number = b.global_index();
    let body = |b: &mut Builder| {
        let first = load(b, buffers[2], number);
        let mut nth = 0;
        let next = |b: &mut Builder| {
            nth += 1;
            load(b, buffers[nth % 3], number)
        };
        let sum = chain(b, first, next, terms, end);
        b.store(Place::new(AddressSpace::Binding(buffers[2]), Some(number), 4, 0), vec![sum]);
    };
    if partial {
        let limit = shape.iter().product::<u32>() + 3;
        let condition = b.compare(BinaryOp::Lt, number, limit);
        b.if_then(condition, body);
    } else {
        body(&mut b);
    }
    b.finish()
}

#[test]
fn chains_end_at_buffer_bounds() {
    for shape in SHAPES {
        let size = 3 * shape.iter().product::<u32>() as usize;
        for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
            for (partial, missing) in [(false, 0), (true, 0), (false, 17)] {
                let buffers = [0, 1 << 8, 1 << 9]
                    .map(|salt| small(salt, size.saturating_sub(missing).max(1)));
                TestLaunch::new([3, 1, 1], &buffers)
                    .assert_agrees(&elementwise_if(shape, terms, end, partial));
            }
        }
    }
}

#[test]
fn chains_have_at_most_five_stages() {
    for (terms, stages) in [(1, 0), (2, 2), (3, 3), (4, 4), (5, 5), (6, 5)] {
        let kir = elementwise([64, 1, 1], terms, End::Addend);
        assert_eq!(max_stages(&kir), stages, "{terms} terms");
    }
    for end in [End::Factor, End::Scaled] {
        assert_eq!(max_stages(&elementwise([64, 1, 1], 3, end)), 4, "{end:?}");
    }
}

/// Returns a stencil on rows of fifty elements. With `branch`, only invocations away from the
/// border compute it; otherwise indices are clamped.
fn stencil(shape: [u32; 3], terms: u32, end: End, branch: bool) -> Kir {
    let mut b = Builder::new("stencil", shape);
    let (from, to) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let [x, y] = [b.global_x(), b.local_id(1)];
    let fifty = b.u32(50);
    let row = b.mul(y, fifty);
    let here = b.add(row, x);
    let body = |b: &mut Builder| {
        let first = load(b, from, here);
        let mut distances = [1, 50, 51, 2, 100, 3, 52].into_iter();
        let next = |b: &mut Builder| {
            let distance = b.u32(distances.next().unwrap());
            let neighbour = b.add(here, distance);
            let index = if branch { neighbour } else { b.clamped(neighbour, 0, 0, 4) };
            load(b, from, index)
        };
        let sum = chain(b, first, next, terms, end);
        b.store(Place::new(AddressSpace::Binding(to), Some(here), 4, 0), vec![sum]);
    };
    if branch {
        let inside = b.compare(BinaryOp::Lt, x, 40);
        b.if_then(inside, body);
    } else {
        body(&mut b);
    }
    b.finish()
}

#[test]
fn chains_of_neighbours_in_rows() {
    for shape in [[16, 4, 1], [8, 8, 1], [32, 2, 1], [5, 3, 1], [48, 1, 1]] {
        let groups = [48u32.div_ceil(shape[0]), 1, 1];
        for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
            for branch in [false, true] {
                let buffers = [small(0, 600), small(1 << 8, 600)];
                // Invocations beyond the row of fifty repeat the stores of others.
                TestLaunch::new(groups, &buffers)
                    .assert_agrees(&stencil(shape, terms, end, branch));
            }
        }
    }
}

#[test]
fn chains_load_and_store_workgroup_memory() {
    for shape in [[16, 4, 1], [64, 1, 1], [5, 3, 1], [8, 8, 1]] {
        for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
            let mut b = Builder::new("workgroup", shape);
            let (from, to) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
            let shared = b.workgroup_array(Type::F32, shape.iter().product());
            let [number, own] = [b.global_index(), b.local_index()];
            let place = Place::new(shared, Some(own), 4, 0);
            let x = load(&mut b, from, number);
            b.store(place, vec![x]);
            let first = b.load(Type::F32, place, 1)[0];
            let mut nth = 0;
            let next = |b: &mut Builder| {
                nth += 1;
                if nth % 2 == 0 { load(b, from, number) } else { b.load(Type::F32, place, 1)[0] }
            };
            let sum = chain(&mut b, first, next, terms, end);
            b.store(place, vec![sum]);
            let result = b.load(Type::F32, place, 1)[0];
            b.store(Place::new(AddressSpace::Binding(to), Some(number), 4, 0), vec![result]);
            let size = 4 * shape.iter().product::<u32>() as usize;
            TestLaunch::new([4, 1, 1], &[small(0, size), small(1 << 8, size)])
                .assert_agrees(&b.finish());
        }
    }
}

/// A variable that is the addend of a chain is assigned between two stages.
#[test]
fn chains_with_assignments_between_stages() {
    for shape in SHAPES {
        let mut b = Builder::new("variables", shape);
        let (from, to) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
        let number = b.global_index();
        let (first_var, second_var) = (b.var(Type::F32), b.var(Type::F32));
        let x = load(&mut b, from, number);
        b.set(first_var, x);
        b.set(second_var, x);
        let old = b.get(first_var);
        let y = load(&mut b, to, number);
        let first = b.add(old, y);
        b.set(first_var, y);
        let now = b.get(first_var);
        let second = b.binary(BinaryOp::Sub, first, now);
        let third = b.add(second, old);
        b.set(first_var, third);
        let [a, c] = [b.get(first_var), b.get(second_var)];
        let z = load(&mut b, to, number);
        let sum = b.add(z, c);
        let sum = b.add(sum, a);
        b.set(second_var, sum);
        let sum = b.get(second_var);
        b.store(Place::new(AddressSpace::Binding(to), Some(number), 4, 0), vec![sum]);
        let size = 3 * shape.iter().product::<u32>() as usize;
        TestLaunch::new([3, 1, 1], &[small(0, size), small(1 << 8, size)])
            .assert_agrees(&b.finish());
    }
}

/// Results are rounded as if computed stage by stage. So the shapes with non-contiguous blocks,
/// which are not computed in one pass, have the same results.
#[test]
fn chains_round_like_separate_stages() {
    let size = 3 * 64;
    let fractions = |first: u32| -> Vec<u8> {
        let number = |n: u32| (n.wrapping_add(first).wrapping_mul(0x9e37_79b9) >> 8) as f32 / 3e5;
        (0..size).flat_map(|n| number(n).to_ne_bytes()).collect()
    };
    for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
        // In the narrow workgroups, blocks span several rows.
        let runs = [[64, 1, 1], [4, 16, 1], [2, 2, 16]].map(|shape| {
            let launch = TestLaunch::new([3, 1, 1], &[0, 77, 5000].map(fractions));
            launch.run(&elementwise(shape, terms, end), &Machine::new(1))
        });
        assert!(runs.iter().all(|run| *run == runs[0]), "{terms} terms, {end:?}");
    }
}
