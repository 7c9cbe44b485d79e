//! Tests of sorts.

use std::cmp::Ordering;

use scry_gpu::Element;
use scry_kernels::Kernels;
use scry_test_support::succeed;

use crate::numbers::Number;
use crate::support::{SIZES, each_variant, error_on_cpu, supported};

/// Lengths around tiles, and with several tiles and chunks of tiles.
const LENGTHS: [usize; 8] = [2047, 2048, 2049, 4096, 5000, 8192, 70_001, 300_007];

/// A type of keys.
trait Key: Number {
    /// Compares in the documented order.
    fn order(&self, other: &Self) -> Ordering;
    /// Values at which the order may be wrong.
    fn special() -> Vec<Self>;
    fn bits(self) -> u32;
}

impl Key for f32 {
    fn order(&self, other: &Self) -> Ordering {
        let nan = |x: &Self| x.is_nan().then_some(x.to_bits()).map_or(0, |bits| 1 + (bits >> 31));
        nan(self).cmp(&nan(other)).then(self.total_cmp(other))
    }

    fn special() -> Vec<Self> {
        let bits = [0x7fc0_0000u32, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff, 1, 0x8000_0001];
        let numbers = [0.0, -0.0, Self::INFINITY, Self::NEG_INFINITY, Self::MAX, Self::MIN];
        bits.map(Self::from_bits).into_iter().chain(numbers).collect()
    }

    fn bits(self) -> u32 {
        self.to_bits()
    }
}

impl Key for i32 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn special() -> Vec<Self> {
        vec![0, -1, 1, Self::MIN, Self::MAX, Self::MIN + 1]
    }

    fn bits(self) -> u32 {
        self as u32
    }
}

impl Key for u32 {
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn special() -> Vec<Self> {
        vec![0, 1, Self::MAX, Self::MAX - 1, 1 << 31]
    }

    fn bits(self) -> u32 {
        self
    }
}

fn bits<K: Key>(keys: &[K]) -> Vec<u32> {
    keys.iter().map(|key| key.bits()).collect()
}

/// Returns the stable order of keys.
fn positions<K: Key>(keys: &[K]) -> Vec<u32> {
    let mut positions: Vec<u32> = (0..keys.len() as u32).collect();
    positions.sort_by(|a, b| keys[*a as usize].order(&keys[*b as usize]));
    positions
}

/// Keys of a distribution: distinct for the most part, or few distinct ones, sorted, and equal.
fn keys<K: Key>(distribution: usize, length: usize) -> Vec<K> {
    let mut keys = K::random(length as u64, length);
    let special = K::special();
    match distribution {
        0 => keys.iter_mut().step_by(7).zip(special).for_each(|(key, value)| *key = value),
        1 => keys.iter_mut().for_each(|key| *key = special[key.bits() as usize % special.len()]),
        2 => keys.sort_by(|a, b| b.order(a)),
        _ => keys.fill(special[1]),
    }
    keys
}

/// Compares words, and names the first difference.
fn assert_words(what: &str, words: &[u32], expected: &[u32]) {
    assert_eq!(words.len(), expected.len(), "{what}");
    let wrong = words.iter().zip(expected).position(|(word, expected)| word != expected);
    let wrong = wrong.map(|at| (at, words[at], expected[at]));
    assert_eq!(wrong, None, "{what}: position, word, expected");
}

/// Uploads data and three more elements, of which only the data is sorted.
fn upload<T: Element>(kernels: &Kernels, data: &[T], more: T) -> scry_gpu::Buffer<T> {
    succeed(kernels.device().upload(&[data, &[more; 3]].concat()))
}

fn check<K: Key>(kernels: &Kernels, what: &str, operation: &str, lengths: &[usize]) {
    for length in lengths {
        for distribution in 0..4 {
            let keys = keys::<K>(distribution, *length);
            let positions = positions(&keys);
            let sorted: Vec<u32> = positions.iter().map(|at| keys[*at as usize].bits()).collect();
            let what = format!("{what}, distribution {distribution} of {length}");
            let device_keys = upload(kernels, &keys, K::POISON);
            let all_keys = succeed(device_keys.slice(..*length));
            let values: Vec<u32> = (0..*length as u32).map(|x| x ^ 0xa5a5_0000).collect();
            let device_values = upload(kernels, &values, 77);
            let all_values = succeed(device_values.slice(..*length));
            let Some(op) = supported(match operation {
                "sort" => kernels.sort(&all_keys),
                "sort_pairs" => kernels.sort_pairs(&all_keys, &all_values),
                _ => kernels.argsort(&all_keys, &device_values),
            }) else {
                return;
            };
            succeed(op.run());
            let (keys_after, poison) = (succeed(device_keys.download()), [K::POISON.bits(); 3]);
            let expected_keys = if operation == "argsort" { bits(&keys) } else { sorted };
            assert_words(&what, &bits(&keys_after), &[&expected_keys[..], &poison].concat());
            let expected: Vec<u32> = match operation {
                "sort" => values,
                "sort_pairs" => positions.iter().map(|at| values[*at as usize]).collect(),
                _ => positions,
            };
            let values_after = succeed(device_values.download());
            assert_words(&what, &values_after, &[&expected[..], &[77; 3]].concat());
        }
    }
}

#[test]
fn keys_are_sorted() {
    each_variant("sort", |kernels, what| {
        check::<f32>(kernels, what, "sort", &SIZES);
        check::<f32>(kernels, what, "sort", &LENGTHS);
        check::<i32>(kernels, what, "sort", &[33, 5000]);
        check::<u32>(kernels, what, "sort", &[31, 2049]);
    });
}

#[test]
fn pairs_are_sorted_stably() {
    each_variant("sort_pairs", |kernels, what| {
        check::<u32>(kernels, what, "sort_pairs", &SIZES);
        check::<u32>(kernels, what, "sort_pairs", &LENGTHS);
        check::<f32>(kernels, what, "sort_pairs", &[127, 4097]);
        if what.contains("lookback") {
            // Large tiles.
            check::<u32>(kernels, what, "sort_pairs", &[3_500_001]);
        }
    });
}

#[test]
fn positions_are_sorted_stably() {
    each_variant("argsort", |kernels, what| {
        check::<i32>(kernels, what, "argsort", &SIZES);
        check::<i32>(kernels, what, "argsort", &LENGTHS);
        check::<f32>(kernels, what, "argsort", &[128, 4097]);
    });
}

#[test]
fn empty_sorts_launch_nothing() {
    each_variant("sort", |kernels, what| {
        let none = succeed(kernels.device().alloc::<f32>(0));
        for op in [kernels.sort(&none), kernels.sort_pairs(&none, &none)] {
            let op = supported(op);
            assert!(op.is_none_or(|op| op.kernel_names().is_empty()), "{what}");
        }
    });
}

#[test]
fn invalid_sorts_are_rejected() {
    let alloc = |kernels: &Kernels, len| succeed(kernels.device().alloc::<u32>(len));
    assert_eq!(
        error_on_cpu(|it| it.sort(&succeed(it.device().alloc::<f64>(5)))),
        "Kernels::sort: buffer `keys` has elements of f64, but u32, i32 or f32 is needed; help: \
         pass a buffer of u32, i32 or f32"
    );
    assert_eq!(
        error_on_cpu(|it| it.sort_pairs(&alloc(it, 5), &alloc(it, 6))),
        "Kernels::sort_pairs: buffer `values` has 6 elements, but `keys` has 5; help: pass one \
         value per key"
    );
    assert_eq!(
        error_on_cpu(|it| it.argsort(&alloc(it, 5), &alloc(it, 4))),
        "Kernels::argsort: buffer `indices` has 4 elements, but len=5 needs at least 5; help: \
         pass a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let keys = alloc(it, 5);
            it.sort_pairs(&keys, &keys)
        }),
        "Kernels::sort_pairs: buffer `values` is written, but shares bytes 0..20 of its memory \
         with buffer `keys`; help: pass buffers or slices that do not overlap"
    );
}
