//! Expected results, computed on the host.

use anyhow::{Result, bail};

use crate::cases::FACTOR;
use crate::job::{Check, Data};
use scry_bench::data;

fn floats(data: &Data) -> Result<&[f32]> {
    match data {
        Data::F32(data) => Ok(data),
        Data::U32(_) => bail!("the result should be floats"),
    }
}

fn integers(data: &Data) -> Result<&[u32]> {
    match data {
        Data::U32(data) => Ok(data),
        Data::F32(_) => bail!("the result should be integers"),
    }
}

/// `y + rounds · a · x`: multiples of 2⁻¹⁰, below 2¹⁴ for up to 2¹⁴ rounds, so no operation rounds.
pub fn saxpy(x: Vec<f32>, y: Vec<f32>) -> Check {
    Box::new(move |rounds, got| {
        data::check("saxpy", floats(got)?, |i| y[i] + rounds as f32 * (FACTOR * x[i]))
    })
}

/// The weighted sums are multiples of 2⁻⁹ up to 16: exact in any order.
pub fn blur(image: Vec<f32>, side: usize) -> Check {
    Box::new(move |_, got| {
        data::check("blur", floats(got)?, |i| {
            let (x, y) = (i % side, i / side);
            let mut sum = 0.0;
            for dy in 0..3usize {
                let row = (y + dy).saturating_sub(1).min(side - 1) * side;
                for dx in 0..3usize {
                    let column = (x + dx).saturating_sub(1).min(side - 1);
                    let weight = (2 - dx.abs_diff(1)) * (2 - dy.abs_diff(1));
                    sum += weight as f32 * image[row + column];
                }
            }
            sum / 16.0
        })
    })
}

/// Prefix sums of each block.
pub fn scan(input: Vec<u32>, block: usize) -> Check {
    Box::new(move |_, got| {
        let mut sum = 0u32;
        for (i, (got, input)) in integers(got)?.iter().zip(&input).enumerate() {
            sum = if i % block == 0 { *input } else { sum.wrapping_add(*input) };
            if *got != sum {
                bail!("scan: element {i} is {got}, it should be {sum}");
            }
        }
        Ok(())
    })
}

/// Exact, see `cases::coarse`.
pub fn matmul(a: Vec<f32>, b: Vec<f32>, n: usize) -> Check {
    let mut c = vec![0.0f32; n * n];
    for (row, c) in c.chunks_mut(n).enumerate() {
        for (k, b) in b.chunks(n).enumerate() {
            let a = a[row * n + k];
            c.iter_mut().zip(b).for_each(|(c, b)| *c += a * b);
        }
    }
    Box::new(move |_, got| data::check("matmul", floats(got)?, |i| c[i]))
}

/// One pixel in two hundred may differ: near the edge of the set, rounding decides.
pub fn mandelbrot(side: usize) -> Check {
    Box::new(move |_, got| {
        let got = integers(got)?;
        let coordinate = |i: usize, offset: f32| i as f32 * 3.0 / side as f32 - offset;
        let expected = |i: usize| escape(coordinate(i % side, 2.25), coordinate(i / side, 1.5));
        let wrong = (0..got.len()).filter(|i| got[*i] != expected(*i)).count();
        if wrong > got.len() / 200 {
            bail!("mandelbrot: {wrong} of {} pixels differ", got.len());
        }
        Ok(())
    })
}

/// Returns the number of steps until the point escapes, at most 256.
fn escape(cx: f32, cy: f32) -> u32 {
    let (mut x, mut y, mut n) = (0.0f32, 0.0f32, 0);
    while n < 256 && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
        n += 1;
    }
    n
}

/// Each step rounds once or twice, and shrinks earlier errors.
pub fn chain(input: Vec<f32>, [a, b]: [f32; 2]) -> Check {
    Box::new(move |_, got| {
        for (i, (got, input)) in floats(got)?.iter().zip(&input).enumerate() {
            let expected = (0..32).fold(f64::from(*input), |x, _| x * f64::from(a) + f64::from(b));
            let is_close = (f64::from(*got) - expected).abs() < 1e-5;
            if !is_close {
                bail!("chain: element {i} is {got}, it should be {expected}");
            }
        }
        Ok(())
    })
}
