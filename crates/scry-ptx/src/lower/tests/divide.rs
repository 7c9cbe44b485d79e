//! Quotients and remainders by constants.

use super::machine::Machine;
use crate::body::Body;
use crate::lower::divide::{quotient_by, remainder_by};
use crate::target::Target;
use crate::types::PtxType;

const TYPES: [(PtxType, bool); 4] =
    [(PtxType::U32, false), (PtxType::S32, true), (PtxType::U64, false), (PtxType::S64, true)];

/// The least and the greatest number of a type.
fn range(ty: PtxType, is_signed: bool) -> (i128, i128) {
    let width = ty.class().bits();
    if is_signed { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// Small numbers, powers of two, the greatest ones, their neighbours, and some others.
fn divisors(ty: PtxType, is_signed: bool) -> Vec<i128> {
    let (low, high) = range(ty, is_signed);
    let small = 1..=30;
    let near = |n: i128| [n - 1, n, n + 1];
    let powers = (5..=ty.class().bits()).flat_map(|bit| near(1 << bit));
    let others = (1..30u64).map(|n| i128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (2 * n)));
    let parts = [3, 5, 7, 10, 641].into_iter().flat_map(|part| near(high / part));
    let all = small.chain(powers).chain(others).chain(parts).chain([low, high]);
    let fits = |n: &i128| *n != 0 && (low..=high).contains(n);
    all.flat_map(|n| [n, -n]).filter(fits).collect()
}

/// The numbers about multiples of a divisor, and about both ends.
fn dividends(divisor: i128, low: i128, high: i128) -> Vec<i128> {
    let multiples = [0, 1, 1000, high / divisor, high / divisor / 2];
    let near = |n: i128| [n - 1, n];
    let about =
        multiples.into_iter().flat_map(|n| [n * divisor, -n * divisor]).chain([low + 1, high]);
    about.flat_map(near).filter(|n| (low..=high).contains(n)).collect()
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
                let found = [quotient, remainder].map(|reg| machine.get(reg));
                let cut = u64::MAX >> (64 - ty.class().bits());
                // The least integer by -1 is itself.
                let expected = [n / divisor, n % divisor].map(|n| n as u64 & cut);
                assert_eq!(found, expected, "{n} by {divisor} as {}: {text}", ty.name());
            }
        }
    }
}
