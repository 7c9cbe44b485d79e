//! Chains of multiply-adds of every length and end, with all kinds of strides, and with results
//! that overwrite operands. Numbers are small integers, so that nothing is rounded; another test
//! uses fractions, whose rounding depends on the order of operations.

use scry_ir::kir::{AddressSpace, BinaryOp, Builder, Const, Kir, Place, Type, Value};

use super::streams::small;
use super::support::{Launch, Make, SHAPES};
use crate::code::Step;
use crate::{Code, Machine};

/// How the last multiply-add of a chain uses the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Term,
    Factor,
    Scaled,
}

const ENDS: [End; 3] = [End::Term, End::Factor, End::Scaled];

fn load(b: &mut Builder, buffer: u32, index: Value) -> Value {
    b.load(Type::F32, Place::new(AddressSpace::Binding(buffer), Some(index), 4, 0), 1)[0]
}

/// Adds this number of terms of different kinds to `first`.
fn sum(
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
        End::Term => sum,
        End::Scaled => b.mul(sum, minus),
        End::Factor => {
            let product = b.mul(minus, sum);
            let x = next(b);
            b.binary(BinaryOp::Sub, x, product)
        }
    }
}

/// Returns the number of stages of the longest chain of a kernel.
fn longest(kir: &Kir) -> usize {
    let code = Code::compile(kir).unwrap();
    let stages = code.steps.iter().map(|step| match step {
        Step::Chain(chain) => chain.stages.len(),
        _ => 0,
    });
    stages.max().unwrap_or(0)
}

/// A kernel on the own elements of three buffers, of which the last is written; with `few`, for
/// some invocations only.
fn own(shape: [u32; 3], terms: u32, end: End, few: bool) -> Kir {
    let mut b = Builder::new("own", shape);
    let buffers = [b.buffer(false), b.buffer(false), b.buffer(true)];
    let number = b.number();
    let body = |b: &mut Builder| {
        let first = load(b, buffers[2], number);
        let mut nth = 0;
        let next = |b: &mut Builder| {
            nth += 1;
            load(b, buffers[nth % 3], number)
        };
        let sum = sum(b, first, next, terms, end);
        b.store(Place::new(AddressSpace::Binding(buffers[2]), Some(number), 4, 0), vec![sum]);
    };
    if few {
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
            for (few, rest) in [(false, 0), (true, 0), (false, 17)] {
                let buffers =
                    [0, 1 << 8, 1 << 9].map(|first| small(first, size.saturating_sub(rest).max(1)));
                Launch::new([3, 1, 1], &buffers).agree(&own(shape, terms, end, few));
            }
        }
    }
}

#[test]
fn chains_have_at_most_five_stages() {
    for (terms, stages) in [(1, 0), (2, 2), (3, 3), (4, 4), (5, 5), (6, 5)] {
        let kir = own([64, 1, 1], terms, End::Term, false);
        assert_eq!(longest(&kir), stages, "{terms} terms");
    }
    for end in [End::Factor, End::Scaled] {
        assert_eq!(longest(&own([64, 1, 1], 3, end, false)), 4, "{end:?}");
    }
}

/// A stencil on a field with rows of fifty, whose border is handled by `clamp` or by a branch.
fn stencil(shape: [u32; 3], terms: u32, end: End, rim: bool) -> Kir {
    let mut b = Builder::new("stencil", shape);
    let (from, to) = (b.buffer(false), b.buffer(true));
    let [x, y] = [b.global_x(), b.local_id(1)];
    let fifty = b.u32(50);
    let row = b.mul(y, fifty);
    let here = b.add(row, x);
    let body = |b: &mut Builder| {
        let first = load(b, from, here);
        let mut by = [1, 50, 51, 2, 100, 3, 52].into_iter();
        let next = |b: &mut Builder| {
            let by = b.u32(by.next().unwrap());
            let there = b.add(here, by);
            let there = if rim { there } else { b.clamped(there, 0, 0, 4) };
            load(b, from, there)
        };
        let sum = sum(b, first, next, terms, end);
        b.store(Place::new(AddressSpace::Binding(to), Some(here), 4, 0), vec![sum]);
    };
    if rim {
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
            for rim in [false, true] {
                let buffers = [small(0, 600), small(1 << 8, 600)];
                // Invocations beyond the row of fifty repeat the stores of others.
                Launch::new(groups, &buffers).agree(&stencil(shape, terms, end, rim));
            }
        }
    }
}

#[test]
fn chains_load_and_store_workgroup_memory() {
    for shape in [[16, 4, 1], [64, 1, 1], [5, 3, 1], [8, 8, 1]] {
        for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
            let mut b = Builder::new("workgroup", shape);
            let (from, to) = (b.buffer(false), b.buffer(true));
            let shared = b.workgroup_array(Type::F32, shape.iter().product());
            let [number, own] = [b.number(), b.local_index()];
            let place = Place::new(shared, Some(own), 4, 0);
            let x = load(&mut b, from, number);
            b.store(place, vec![x]);
            let first = b.load(Type::F32, place, 1)[0];
            let mut nth = 0;
            let next = |b: &mut Builder| {
                nth += 1;
                if nth % 2 == 0 { load(b, from, number) } else { b.load(Type::F32, place, 1)[0] }
            };
            let sum = sum(&mut b, first, next, terms, end);
            b.store(place, vec![sum]);
            let result = b.load(Type::F32, place, 1)[0];
            b.store(Place::new(AddressSpace::Binding(to), Some(number), 4, 0), vec![result]);
            let size = 4 * shape.iter().product::<u32>() as usize;
            Launch::new([4, 1, 1], &[small(0, size), small(1 << 8, size)]).agree(&b.finish());
        }
    }
}

/// A variable holds the addend of a chain; it is assigned between two stages.
#[test]
fn chains_with_variables_assigned_in_between() {
    for shape in SHAPES {
        let mut b = Builder::new("variables", shape);
        let (from, to) = (b.buffer(false), b.buffer(true));
        let number = b.number();
        let (kept, other) = (b.var(Type::F32), b.var(Type::F32));
        let x = load(&mut b, from, number);
        b.set(kept, x);
        b.set(other, x);
        let old = b.get(kept);
        let y = load(&mut b, to, number);
        let first = b.add(old, y);
        b.set(kept, y);
        let now = b.get(kept);
        let second = b.binary(BinaryOp::Sub, first, now);
        let third = b.add(second, old);
        b.set(kept, third);
        let [a, c] = [b.get(kept), b.get(other)];
        let z = load(&mut b, to, number);
        let sum = b.add(z, c);
        let sum = b.add(sum, a);
        b.set(other, sum);
        let sum = b.get(other);
        b.store(Place::new(AddressSpace::Binding(to), Some(number), 4, 0), vec![sum]);
        let size = 3 * shape.iter().product::<u32>() as usize;
        Launch::new([3, 1, 1], &[small(0, size), small(1 << 8, size)]).agree(&b.finish());
    }
}

/// Results are rounded as if computed stage by stage: non-contiguous blocks, which are not computed
/// in one pass, have the same results.
#[test]
fn chains_round_like_separate_stages() {
    let size = 3 * 64;
    let fractions = |first: u32| -> Vec<u8> {
        let number = |n: u32| (n.wrapping_add(first).wrapping_mul(0x9e37_79b9) >> 8) as f32 / 3e5;
        (0..size).flat_map(|n| number(n).to_ne_bytes()).collect()
    };
    for (terms, end) in (1..=6).flat_map(|terms| ENDS.map(|end| (terms, end))) {
        // In rows of five lanes, blocks span several rows.
        let runs = [[64, 1, 1], [4, 16, 1], [2, 2, 16]].map(|shape| {
            let launch = Launch::new([3, 1, 1], &[0, 77, 5000].map(fractions));
            launch.run(&own(shape, terms, end, false), &Machine::new(1))
        });
        assert!(runs.iter().all(|run| *run == runs[0]), "{terms} terms, {end:?}");
    }
}
