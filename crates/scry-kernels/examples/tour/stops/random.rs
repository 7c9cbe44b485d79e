//! Random numbers, by the counter-based generator Philox 4×32-10.

use std::f64::consts::TAU;

use super::{Result, Tour, check, check_equal};

const SEED: u64 = 0x0123_4567_89ab_cdef;

pub(super) fn visit(tour: &mut Tour) -> Result {
    let count = 10_000 * tour.scale;
    let word =
        |at: usize| philox([at as u32 / 4, 0, 0, 0], [SEED as u32, (SEED >> 32) as u32])[at % 4];
    let words: Vec<u32> = (0..count).map(word).collect();

    let y = tour.gpu.alloc::<u32>(count)?;
    let op = tour.kernels.random_bits(&y, SEED);
    tour.show("random_bits", &format!("u32 {count}"), op, 4 * count, || check_equal(&y, &words))?;

    let y = tour.gpu.alloc::<f32>(count)?;
    let sizes = format!("f32 {count}");
    let expected: Vec<f64> =
        words.iter().map(|word| f64::from(word >> 8) / 2f64.powi(24)).collect();
    let op = tour.kernels.random_uniform(&y, SEED);
    tour.show("random_uniform", &sizes, op, 4 * count, || check(&y, &expected, 0.0))?;

    // The method of Box and Muller.
    let normal = |pair: &[u32]| {
        let u = (f64::from(pair[0]) + 0.5) / 2f64.powi(32);
        let (sin, cos) = (TAU * f64::from(pair[1]) / 2f64.powi(32)).sin_cos();
        [cos, sin].map(|it| it * (-2.0 * u.ln()).sqrt())
    };
    let expected: Vec<f64> = words.chunks_exact(2).flat_map(normal).collect();
    let op = tour.kernels.random_normal(&y, SEED);
    tour.show("random_normal", &sizes, op, 4 * count, || check(&y, &expected, 1e-5))
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let product = |factor: u32, word: u32| u64::from(factor) * u64::from(word);
        let [first, second] = [product(0xd251_1f53, counter[0]), product(0xcd9e_8d57, counter[2])];
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}
