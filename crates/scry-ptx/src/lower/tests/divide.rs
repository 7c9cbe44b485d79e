//! Tests of quotients and remainders by constants.

use super::machine::Machine;
use crate::body::Body;
use crate::lower::arith::wrapping_type;
use crate::lower::divide::{quotient_by, remainder_by};
use crate::target::Target;
use crate::types::PtxType;

const TYPES: [(PtxType, bool); 4] =
    [(PtxType::U32, false), (PtxType::S32, true), (PtxType::U64, false), (PtxType::S64, true)];

/// Returns the minimum and the maximum of a type.
fn range(ty: PtxType, is_signed: bool) -> (i128, i128) {
    let width = ty.class().bits();
    if is_signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// Returns small numbers, powers of two and fractions of the maximum with their neighbours, some
/// other numbers, and the minimum and maximum; all of them with both signs.
fn divisors(ty: PtxType, is_signed: bool) -> Vec<i128> {
    let (low, high) = range(ty, is_signed);
    let small = 1..=30;
    let near = |n: i128| [n - 1, n, n + 1];
    let powers = (5..=ty.class().bits()).flat_map(|bit| near(1 << bit));
    let spread = (1..30u64).map(|n| i128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (2 * n)));
    let fractions = [3, 5, 7, 10, 641].into_iter().flat_map(|denominator| near(high / denominator));
    let all = small.chain(powers).chain(spread).chain(fractions).chain([low, high]);
    let fits = |n: &i128| *n != 0 && (low..=high).contains(n);
    all.flat_map(|n| [n, -n]).filter(fits).collect()
}

/// Returns numbers next to multiples of a divisor, and next to the minimum and maximum.
fn dividends(divisor: i128, low: i128, high: i128) -> Vec<i128> {
    let multiples = [0, 1, 1000, high / divisor, high / divisor / 2];
    let near = |n: i128| [n - 1, n];
    let near_numbers =
        multiples.into_iter().flat_map(|n| [n * divisor, -n * divisor]).chain([low + 1, high]);
    near_numbers.flat_map(near).filter(|n| (low..=high).contains(n)).collect()
}

#[test]
fn division_by_constants_is_exact() {
    for (ty, is_signed) in TYPES {
        let (low, high) = range(ty, is_signed);
        for divisor in divisors(ty, is_signed) {
            let mut b = Body::new(Target::SM_75);
            let dividend = b.reg(ty);
            let quotient = quotient_by(&mut b, ty, dividend.into(), divisor);
            let remainder = remainder_by(&mut b, ty, dividend.into(), divisor);
            let text = format!("{:#?}", b.lines());
            assert!(!text.contains("div") && !text.contains("rem"), "{text}");
            for n in dividends(divisor, low, high) {
                let mut machine = Machine::new(&mut []);
                machine.set(dividend, n as u64);
                machine.run(b.lines());
                let results = [quotient, remainder].map(|reg| machine.get(reg));
                let mask = u64::MAX >> (64 - ty.class().bits());
                // Truncated, the quotient of the minimum and -1 is the minimum.
                let expected = [n / divisor, n % divisor].map(|n| n as u64 & mask);
                assert_eq!(results, expected, "{n} by {divisor} as {}: {text}", ty.name());
            }
        }
    }
}

#[test]
fn quotients_by_minus_powers_of_two_wrap() {
    // `ptxas` assumes that signed operations do not overflow; the quotient of the minimum and -1
    // does.
    for (ty, divisor) in [(PtxType::S32, -1), (PtxType::S64, -1), (PtxType::S32, -8)] {
        let mut b = Body::new(Target::SM_75);
        let dividend = b.reg(ty);
        quotient_by(&mut b, ty, dividend.into(), divisor);
        let last = b.lines().last().expect("there are instructions").to_string();
        assert!(last.contains(&format!("sub.{}", wrapping_type(ty).name())), "{last}");
    }
}
