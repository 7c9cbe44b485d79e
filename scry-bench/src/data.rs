//! Input that makes errors visible, and exact comparison.

use anyhow::{Result, bail};

/// Returns `n` non-zero numbers between -1 and 1. They are multiples of 2⁻⁹: sums of thousands of
/// them are exact, and results can be compared bit for bit.
pub fn random(seed: u32, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let multiple = (state >> 22) as i32 - 512;
        (if multiple == 0 { 512 } else { multiple }) as f32 / 512.0
    };
    (0..n).map(|_| next()).collect()
}

/// Returns an error for the first element that differs from `expected`.
pub fn check(what: &str, got: &[f32], expected: impl Fn(usize) -> f32) -> Result<()> {
    for (i, got) in got.iter().enumerate() {
        let value = expected(i);
        if *got != value {
            bail!("{what}: element {i} is {got}, expected {value}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_differ_and_exclude_zero() {
        let x = random(1, 10_000);
        assert!(x.iter().all(|x| *x != 0.0 && x.abs() <= 1.0));
        assert_ne!(x, random(2, 10_000));
        assert!(x.iter().any(|x| *x > 0.5) && x.iter().any(|x| *x < -0.5));
    }

    #[test]
    fn a_wrong_element_is_named() {
        let error = check("sum", &[1.0, 2.0], |_| 1.0).unwrap_err();
        assert_eq!(error.to_string(), "sum: element 1 is 2, expected 1");
    }
}
