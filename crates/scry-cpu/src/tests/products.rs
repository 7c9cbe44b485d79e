//! Tests of cooperative matrix products, with all lanes and with some.

use scry_ir::kir::{Access, AddressSpace, BinaryOp, Builder, Const, Kir, Place, Type, Value};

use super::support::{BuilderExt, TestLaunch, bytes, words};
use crate::Machine;

const SHAPES: [[u32; 3]; 4] = [[64, 1, 1], [7, 3, 2], [33, 1, 1], [8, 8, 1]];

/// Returns a small integer: every type represents it and the accumulated products exactly.
fn small(seed: usize) -> i32 {
    (seed * seed + 3 * seed) as i32 % 7 - 3
}

/// Returns a scalar of an operand in a lane.
fn scalar(lane: usize, operand: usize, nth: usize) -> i32 {
    small(lane * 37 + operand * 11 + nth * 5)
}

/// Returns a kernel in which every `step`th invocation multiplies matrices of small numbers, and
/// stores the result as `i32`.
fn kernel(shape: [u32; 3], step: u32, operand_type: Type, accumulator_type: Type) -> Kir {
    let mut b = Builder::new("products", shape);
    let (input, out) = (b.buffer(Access::Read), b.buffer(Access::ReadWrite));
    let number = b.global_index();
    let by = b.u32(step);
    let rem = b.binary(BinaryOp::Rem, number, by);
    let condition = b.compare(BinaryOp::Eq, rem, 0);
    b.if_then(condition, |b| {
        let mut next = 0;
        let mut read = |b: &mut Builder, ty: Type| -> Value {
            let place = Place::new(AddressSpace::Binding(input), Some(number), 40, 4 * next);
            next += 1;
            let word = b.load(Type::I32, place, 1)[0];
            b.convert(ty, word)
        };
        let a = std::array::from_fn(|_| read(b, operand_type));
        let right = std::array::from_fn(|_| read(b, operand_type));
        let c = std::array::from_fn(|_| read(b, accumulator_type));
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
    let element =
        |lane: usize, operand, nth| if active(lane) { scalar(lane, operand, nth) } else { 0 };
    std::array::from_fn(|nth| {
        let (row, column) = (lane / 4, lane % 4 * 2 + nth % 2);
        let products = (0..8).map(|k| {
            let left = element(row * 4 + k / 2, 0, nth / 2 * 2 + k % 2);
            left * element(column * 4 + k / 2, 1, k % 2)
        });
        scalar(lane, 2, nth) + products.sum::<i32>()
    })
}

fn assert_product(shape: [u32; 3], step: usize, operand_type: Type, accumulator_type: Type) {
    let size = shape.iter().product::<u32>() as usize;
    let data = (0..size).flat_map(|number| {
        let operands = [(0, 4), (1, 2), (2, 4)].into_iter();
        let lane = number % 32;
        operands.flat_map(move |(operand, count)| {
            (0..count).map(move |nth| scalar(lane, operand, nth) as u32)
        })
    });
    let data: Vec<u32> = data.collect();
    let kir = kernel(shape, step as u32, operand_type, accumulator_type);
    let launch = TestLaunch::new([1, 1, 1], &[bytes(&data), bytes(&vec![99; size * 4])]);
    let out = words(&launch.run(&kir, &Machine::new(1))[1]);
    for (number, out) in out.chunks(4).enumerate() {
        let first = number / 32 * 32;
        let active = |lane: usize| first + lane < size && (first + lane).is_multiple_of(step);
        let want = match number.is_multiple_of(step) {
            true => expected(number % 32, &active),
            false => [99; 4],
        };
        let got: Vec<i32> = out.iter().map(|word| *word as i32).collect();
        assert_eq!(got, want, "{shape:?}, {step}, {operand_type}, invocation {number}");
    }
}

#[test]
fn inactive_lanes_have_zero_elements() {
    for shape in SHAPES {
        for step in [1, 2, 3, 5] {
            for (operand_type, accumulator_type) in
                [(Type::F16, Type::F16), (Type::F16, Type::F32), (Type::F32, Type::F32)]
            {
                assert_product(shape, step, operand_type, accumulator_type);
            }
        }
    }
}

#[test]
fn f16_accumulation_rounds_once() {
    // 2048 + 1 rounds to 2048 in f16. But products are accumulated in f32, so that 2048 plus eight
    // products of 1 is 2056.
    let mut b = Builder::new("rounding", [32, 1, 1]);
    let out = b.buffer(Access::ReadWrite);
    let one = b.constant(Const { ty: Type::F16, bits: 0x3c00 });
    let large = b.constant(Const { ty: Type::F16, bits: 0x6800 });
    let result = b.multiply_fragments([one; 4], [one; 2], [large; 4]);
    let result = b.convert(Type::U32, result[3]);
    let number = b.global_index();
    b.store_word(out, number, result);
    let launch = TestLaunch::new([1, 1, 1], &[bytes(&[0; 32])]);
    assert_eq!(words(&launch.run(&b.finish(), &Machine::new(1))[0]), [2056; 32]);
}
