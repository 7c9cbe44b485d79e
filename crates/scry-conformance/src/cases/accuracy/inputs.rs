//! Inputs of the accuracy tests.

use std::f64::consts::PI;

use super::range::{F16, Format};
use crate::random::RandomWords;
use crate::ty::nearest_f16;

/// Corner cases of the functions. Those that overflow the format are replaced by 1.
const SPECIAL: [f64; 24] = [
    0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    1.5,
    2.5,
    -3.5,
    0.999_023_437_5,
    1.000_976_562_5,
    3.140_625,
    -3.140_625,
    1.570_312_5,
    -0.785_156_25,
    0.000_061_035_156_25,
    -0.000_061_035_156_25,
    60000.0,
    -4096.0,
    8_388_609.0,
    1e30,
    -1e-30,
    1.175_494_350_822_287_5e-38,
];

/// Rounds to the nearest number of the format.
pub fn nearest(format: Format, x: f64) -> f64 {
    match format == F16 {
        true => nearest_f16(x).to_f64(),
        false => f64::from(x as f32),
    }
}

/// Returns triples of finite numbers: random ones of several magnitudes, some of them subnormal,
/// and special ones. The numbers of a triple are of one kind.
pub fn inputs(format: Format, count: usize) -> Vec<[f64; 3]> {
    let mut words = RandomWords(11);
    let mut next = move || words.next().expect("the sequence is infinite");
    let mut group = |kind: u32| [0; 3].map(|_| number(format, kind, &mut next));
    (0..count as u32).map(|i| group(i % 7)).collect()
}

/// Returns a number of one of seven kinds: in [-1, 1), [-π, π), [-40, 40), of magnitudes near 1, of
/// any magnitude, near the smallest normal number, or special.
fn number(format: Format, kind: u32, next: &mut impl FnMut() -> u32) -> f64 {
    let unit = f64::from(next()) / 2f64.powi(31) - 1.0;
    let power = |range: i32, word: u32| 2f64.powi((word % (2 * range as u32 + 1)) as i32 - range);
    let x = match kind {
        0 => unit,
        1 => unit * PI,
        2 => unit * 40.0,
        3 => unit.signum() * (1.0 + unit.abs()) * power(8, next()),
        4 => unit.signum() * (1.0 + unit.abs()) * power(-format.min_exponent, next()),
        5 => unit * 2f64.powi(format.min_exponent + (next() % 2) as i32),
        _ => SPECIAL[next() as usize % SPECIAL.len()],
    };
    let x = nearest(format, x);
    if x.abs() <= format.max { x } else { 1.0 }
}
