//! Cooperative matrix products, with all lanes and with some.

use scry_ir::kir::{AddressSpace, BinaryOp, Builder, Const, Kir, Place, Type, Value};

use super::support::{Launch, Make, bytes, words};
use crate::Machine;

const SHAPES: [[u32; 3]; 4] = [[64, 1, 1], [7, 3, 2], [33, 1, 1], [8, 8, 1]];

/// A small integer: every type represents it and the accumulated products exactly.
fn small(seed: usize) -> i32 {
    (seed * seed + 3 * seed) as i32 % 7 - 3
}

/// Returns a scalar of an operand in a lane.
fn scalar(lane: usize, operand: usize, nth: usize) -> i32 {
    small(lane * 37 + operand * 11 + nth * 5)
}

/// A kernel in which every `step`th invocation multiplies matrices of small numbers, and stores the
/// result as `i32`.
fn kernel(shape: [u32; 3], step: u32, factor: Type, sum: Type) -> Kir {
    let mut b = Builder::new("products", shape);
    let (input, out) = (b.buffer(false), b.buffer(true));
    let number = b.number();
    let by = b.u32(step);
    let rest = b.binary(BinaryOp::Rem, number, by);
    let condition = b.compare(BinaryOp::Eq, rest, 0);
    b.if_then(condition, |b| {
        let mut next = 0;
        let mut read = |b: &mut Builder, ty: Type| -> Value {
            let place = Place::new(AddressSpace::Binding(input), Some(number), 40, 4 * next);
            next += 1;
            let word = b.load(Type::I32, place, 1)[0];
            b.convert(ty, word)
        };
        let a = std::array::from_fn(|_| read(b, factor));
        let right = std::array::from_fn(|_| read(b, factor));
        let c = std::array::from_fn(|_| read(b, sum));
        for (nth, result) in (0..).zip(b.multiply_fragments(a, right, c)) {
            let result = b.convert(Type::I32, result);
            let place = Place::new(AddressSpace::Binding(out), Some(number), 16, 4 * nth);
            b.store(place, vec![result]);
        }
    });
    b.finish()
}

/// Returns the expected results of a lane for the active lanes of its subgroup.
fn expected(lane: usize, active: &dyn Fn(usize) -> bool) -> [i32; 4] {
    let held =
        |lane: usize, operand, nth| if active(lane) { scalar(lane, operand, nth) } else { 0 };
    std::array::from_fn(|nth| {
        let (row, column) = (lane / 4, lane % 4 * 2 + nth % 2);
        let products = (0..8).map(|k| {
            let left = held(row * 4 + k / 2, 0, nth / 2 * 2 + k % 2);
            left * held(column * 4 + k / 2, 1, k % 2)
        });
        scalar(lane, 2, nth) + products.sum::<i32>()
    })
}

fn check(shape: [u32; 3], step: usize, factor: Type, sum: Type) {
    let size = shape.iter().product::<u32>() as usize;
    let data = (0..size).flat_map(|number| {
        let operands = [(0, 4), (1, 2), (2, 4)].into_iter();
        let lane = number % 32;
        operands.flat_map(move |(operand, count)| {
            (0..count).map(move |nth| scalar(lane, operand, nth) as u32)
        })
    });
    let data: Vec<u32> = data.collect();
    let kir = kernel(shape, step as u32, factor, sum);
    let launch = Launch::new([1, 1, 1], &[bytes(&data), bytes(&vec![99; size * 4])]);
    let out = words(&launch.run(&kir, &Machine::new(1))[1]);
    for (number, out) in out.chunks(4).enumerate() {
        let first = number / 32 * 32;
        let active = |lane: usize| first + lane < size && (first + lane).is_multiple_of(step);
        let want = match number.is_multiple_of(step) {
            true => expected(number % 32, &active),
            false => [99; 4],
        };
        let got: Vec<i32> = out.iter().map(|word| *word as i32).collect();
        assert_eq!(got, want, "{shape:?}, {step}, {factor}, invocation {number}");
    }
}

#[test]
fn inactive_lanes_are_zero() {
    for shape in SHAPES {
        for step in [1, 2, 3, 5] {
            for (factor, sum) in
                [(Type::F16, Type::F16), (Type::F16, Type::F32), (Type::F32, Type::F32)]
            {
                check(shape, step, factor, sum);
            }
        }
    }
}

#[test]
fn f16_accumulation_rounds_once() {
    // 2048 is followed by 2050 in 16 bits, yet 2048 + 1 + 1 + … of eight ones is 2056.
    let mut b = Builder::new("halves", [32, 1, 1]);
    let out = b.buffer(true);
    let one = b.constant(Const { ty: Type::F16, bits: 0x3c00 });
    let large = b.constant(Const { ty: Type::F16, bits: 0x6800 });
    let result = b.multiply_fragments([one; 4], [one; 2], [large; 4]);
    let result = b.convert(Type::U32, result[3]);
    let number = b.number();
    b.put(out, number, result);
    let launch = Launch::new([1, 1, 1], &[bytes(&[0; 32])]);
    assert_eq!(words(&launch.run(&b.finish(), &Machine::new(1))[0]), [2056; 32]);
}
