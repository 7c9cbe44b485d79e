//! Tests of random numbers.

use std::f64::consts::TAU;

use scry_gpu::{Buffer, Device};
use scry_kernels::Kernels;
use scry_test_support::{on_each_device, succeed};

use crate::for_each_float;
use crate::support::{Float, SIZES, assert_close, each_variant, poisoned, supported, type_name};

/// Philox 4×32-10, as published.
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

/// The random bits of a seed.
fn bits(seed: u64, count: usize) -> Vec<u32> {
    let word =
        |at: usize| philox([at as u32 / 4, 0, 0, 0], [seed as u32, (seed >> 32) as u32])[at % 4];
    (0..count).map(word).collect()
}

const SEEDS: [u64; 3] = [0, 42, 0x0123_4567_89ab_cdef];

#[test]
fn reference_has_published_results() {
    assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    assert_eq!(
        philox([u32::MAX; 4], [u32::MAX; 2]),
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
    );
    assert_eq!(
        philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
    );
}

#[test]
fn bits_match_reference() {
    each_variant("random_bits", |kernels, what| {
        let gpu = kernels.device();
        for (count, seed) in SIZES.into_iter().chain([4097, 4100, 20_000]).zip(SEEDS.iter().cycle())
        {
            let all = succeed(gpu.upload(&vec![7u32; count + 4]));
            let y = succeed(all.slice(..count));
            let Some(op) = supported(kernels.random_bits(&y, *seed)) else { return };
            succeed(op.run());
            let mut expected = bits(*seed, count);
            expected.extend([7; 4]);
            assert_eq!(succeed(all.download()), expected, "{what}: {count}, seed {seed}");
            let signed = succeed(gpu.alloc::<i32>(count));
            succeed(succeed(kernels.random_bits(&signed, *seed)).run());
            let signed: Vec<_> = succeed(signed.download()).iter().map(|y| *y as u32).collect();
            assert_eq!(signed, expected[..count], "{what}: {count}, signed");
        }
    });
}

/// The upper bits that a uniform number of a type consists of.
fn upper_bits<T: Float>() -> i32 {
    match type_name::<T>() {
        "f16" => 11,
        "bf16" => 8,
        _ => 24,
    }
}

fn check_uniform<T: Float>(kernels: &Kernels, what: &str) {
    for count in [1, 3, 128, 1009, 5000] {
        let y = poisoned::<T>(kernels.device(), count);
        let Some(op) = supported(kernels.random_uniform(&y, 5)) else { return };
        succeed(op.run());
        let bits = bits(5, count).into_iter();
        let expected = bits.map(|word| {
            f64::from(word >> (32 - upper_bits::<T>())) * 0.5f64.powi(upper_bits::<T>())
        });
        let y: Vec<f64> = succeed(y.download()).iter().map(|y| y.wide()).collect();
        let expected: Vec<f64> = expected.collect();
        assert_eq!(y, expected, "{what}, {} {count}", type_name::<T>());
        assert!(y.iter().all(|y| (0.0..1.0).contains(y)));
    }
}

#[test]
fn uniform_numbers_are_exact() {
    each_variant("random_uniform", |kernels, what| {
        for_each_float!(check_uniform(kernels, what));
    });
}

/// The normal numbers of words, in f64, as documented.
fn normal(words: &[u32]) -> Vec<f64> {
    let pair = |pair: &[u32]| {
        let u = (f64::from(pair[0]) + 0.5) / 2f64.powi(32);
        let angle = TAU * f64::from(pair[1]) / 2f64.powi(32);
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * angle.cos(), radius * angle.sin()]
    };
    words.chunks(2).flat_map(pair).collect()
}

fn check_normal<T: Float>(kernels: &Kernels, what: &str) {
    for count in [1, 4, 1009, 20_000] {
        let y = poisoned::<T>(kernels.device(), count);
        let Some(op) = supported(kernels.random_normal(&y, 1 << 40)) else { return };
        succeed(op.run());
        let expected = normal(&bits(1 << 40, count.next_multiple_of(2)));
        let what = format!("{what}, {} {count}", type_name::<T>());
        assert_close(&what, 4.0, 4.0, &succeed(y.download()), &expected[..count]);
    }
}

#[test]
fn normal_numbers_match_reference() {
    each_variant("random_normal", |kernels, what| {
        for_each_float!(check_normal(kernels, what));
    });
}

/// Converts words by the function of the library.
fn convert(gpu: &Device, words: &[u32]) -> Vec<f32> {
    let source = [
        include_str!("../../src/shaders/turns.wgsl"),
        include_str!("../../src/shaders/random_normal.wgsl"),
        "@group(0) @binding(0) var<storage, read> words: array<vec4<u32>>;
         @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
         @compute @workgroup_size(64)
         fn convert(@builtin(global_invocation_id) id: vec3<u32>) {
             if id.x < arrayLength(&y) { y[id.x] = distributed(words[id.x]); }
         }",
    ];
    let input = succeed(gpu.upload(words));
    let y: Buffer<f32> = succeed(gpu.alloc(words.len()));
    succeed(gpu.dispatch(&source.concat(), &[&input, &y], words.len() / 4));
    succeed(y.download())
}

#[test]
fn normal_numbers_of_extreme_words_are_accurate() {
    let edges = [0, 1, 2, 3, 0xb504_f333, 0xb504_f334, 0x5a82_7999, 0x7fff_ffff, 0x8000_0000];
    let ends = [u32::MAX, u32::MAX - 1, u32::MAX - 1000, u32::MAX - (1 << 20)];
    let radii: Vec<u32> =
        edges.into_iter().chain(ends).chain((0..32).map(|bit| 1 << bit)).collect();
    let angles = [0, 1, 0x2000_0000, 0x1fff_ffff, 0x6000_0000, 0xc000_0000, 0xdfff_ffff];
    let words: Vec<u32> =
        radii.iter().flat_map(|a| angles.iter().flat_map(|b| [*a, *b, *a, !*b])).collect();
    let expected = normal(&words);
    on_each_device(|gpu| {
        for (at, (y, expected)) in convert(gpu, &words).into_iter().zip(&expected).enumerate() {
            let u = (f64::from(words[at / 2 * 2]) + 0.5) / 2f64.powi(32);
            let radius = (-2.0 * u.ln()).sqrt();
            let difference = (f64::from(y) - expected).abs();
            assert!(difference <= 4e-7 * radius, "{at}: {y}, expected {expected}");
        }
    });
}

#[test]
fn moments_are_those_of_the_distributions() {
    let count = 100_000;
    on_each_device(|gpu| {
        let kernels = succeed(Kernels::new(gpu));
        let y = succeed(gpu.alloc::<f32>(count));
        let moments = || {
            let y = succeed(y.download());
            let mean = |power: i32| {
                y.iter().map(|y| f64::from(*y).powi(power)).sum::<f64>() / count as f64
            };
            [mean(1), mean(2), mean(3), mean(4)]
        };
        succeed(succeed(kernels.random_uniform(&y, 9)).run());
        for (found, expected) in moments().iter().zip([0.5, 1.0 / 3.0, 0.25, 0.2]) {
            assert!((found - expected).abs() < 0.005, "{found}, expected {expected}");
        }
        succeed(succeed(kernels.random_normal(&y, 9)).run());
        for (found, expected) in moments().iter().zip([0.0, 1.0, 0.0, 3.0]) {
            assert!((found - expected).abs() < 0.1, "{found}, expected {expected}");
        }
    });
}

#[test]
fn other_buffers_are_rejected() {
    let gpu = succeed(Device::open("cpu"));
    let kernels = succeed(Kernels::new(&gpu));
    let error = kernels.random_uniform(&succeed(gpu.alloc::<u32>(4)), 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::random_uniform: buffer `y` has elements of u32, but f32, f16 or bf16 is needed; \
         help: pass a buffer of f32, f16 or bf16"
    );
    let error = kernels.random_bits(&succeed(gpu.alloc::<f32>(4)), 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Kernels::random_bits: buffer `y` has elements of f32, but u32 or i32 is needed; help: \
         pass a buffer of u32 or i32"
    );
    let none = succeed(kernels.random_bits(&succeed(gpu.alloc::<u32>(0)), 1));
    assert!(none.kernel_names().is_empty());
}
