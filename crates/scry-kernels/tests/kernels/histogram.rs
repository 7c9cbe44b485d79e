//! Tests of histograms and of compaction.

use scry_gpu::{bf16, f16};
use scry_kernels::Kernels;
use scry_test_support::succeed;

use crate::for_each_number;
use crate::numbers::{Number, poisoned_numbers};
use crate::support::{SIZES, each_variant, error_on_cpu, supported, type_name};

/// Lengths around vectors, tiles and chunks.
const LENGTHS: [usize; 7] = [4, 129, 4095, 4096, 4097, 70_001, 300_004];

/// Bins: counters in workgroup memory, with and without copies, and in the buffer.
const BINS: [usize; 8] = [1, 2, 255, 256, 1000, 4096, 4097, 70_000];

#[test]
fn counts_match_reference() {
    each_variant("histogram", |kernels, what| {
        for length in SIZES.into_iter().chain(LENGTHS) {
            for bins in BINS {
                // Some are out of range.
                let bound = bins as u32 + 3;
                let x: Vec<u32> =
                    u32::random(length as u64, length).into_iter().map(|x| x % bound).collect();
                let counts = poisoned_numbers::<u32>(kernels.device(), bins + 3);
                let bound = succeed(counts.slice(..bins));
                let op = kernels.histogram(&succeed(kernels.device().upload(&x)), &bound);
                let Some(op) = supported(op) else { return };
                succeed(op.run());
                let mut expected = vec![0; bins];
                x.iter().filter(|x| **x < bins as u32).for_each(|x| expected[*x as usize] += 1);
                expected.extend([u32::POISON; 3]);
                let what = format!("{what}, {length} elements, {bins} bins");
                assert!(succeed(counts.download()) == expected, "{what}");
            }
        }
    });
}

#[test]
fn extreme_elements_are_counted_or_ignored() {
    each_variant("histogram", |kernels, what| {
        for bins in [256, 5000] {
            let mut x = vec![7u32; 100_000];
            x[50_000..].fill(u32::MAX);
            let counts = poisoned_numbers::<u32>(kernels.device(), bins);
            let op = kernels.histogram(&succeed(kernels.device().upload(&x)), &counts);
            let Some(op) = supported(op) else { return };
            // The second run counts from 0 too.
            succeed(op.run());
            succeed(op.run());
            let counts = succeed(counts.download());
            assert_eq!((counts[7], counts.iter().sum::<u32>()), (50_000, 50_000), "{what}");
        }
    });
}

#[test]
fn histograms_of_nothing() {
    each_variant("histogram", |kernels, what| {
        let gpu = kernels.device();
        let none = succeed(gpu.alloc::<u32>(0));
        let counts = poisoned_numbers::<u32>(gpu, 300);
        let Some(op) = supported(kernels.histogram(&none, &counts)) else { return };
        succeed(op.run());
        assert_eq!(succeed(counts.download()), [0; 300], "{what}");
        let x = succeed(gpu.upload(&[1u32, 2]));
        let op = supported(kernels.histogram(&x, &none));
        assert!(op.is_none_or(|op| op.kernel_names().is_empty()), "{what}");
    });
}

fn check_compact<T: Number>(kernels: &Kernels, what: &str, length: usize, flags: &[u32]) {
    let gpu = kernels.device();
    let x = T::random(length as u64, length);
    let y = poisoned_numbers::<T>(gpu, length + 1);
    let count = poisoned_numbers::<u32>(gpu, 2);
    let (device_x, device_flags) = (succeed(gpu.upload(&x)), succeed(gpu.upload(flags)));
    let Some(op) = supported(kernels.compact(&device_x, &device_flags, &y, &count)) else { return };
    succeed(op.run());
    let selected = x.iter().zip(flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x);
    let mut expected: Vec<T> = selected.collect();
    let what = format!("{what}, {} of {length} {}", expected.len(), type_name::<T>());
    assert_eq!(succeed(count.download()), [expected.len() as u32, u32::POISON], "{what}");
    expected.resize(length + 1, T::POISON);
    let wrong = succeed(y.download()).iter().zip(&expected).position(|(y, x)| !y.is_same(*x));
    assert_eq!(wrong, None, "{what}: the first wrong element");
}

fn check_densities<T: Number>(kernels: &Kernels, what: &str, lengths: &[usize]) {
    for length in lengths {
        for density in [0, 1, 50, 99, 100] {
            let flags = u32::random(5, *length).into_iter();
            let flags: Vec<u32> =
                flags.map(|x| if x % 100 < density { x | 0x8000_0000 } else { 0 }).collect();
            check_compact::<T>(kernels, what, *length, &flags);
        }
    }
}

#[test]
fn selected_elements_are_copied_in_order() {
    each_variant("compact", |kernels, what| {
        check_densities::<f32>(kernels, what, &SIZES);
        check_densities::<u32>(kernels, what, &LENGTHS);
        check_densities::<f16>(kernels, what, &[33, 5000]);
        check_densities::<bf16>(kernels, what, &[257]);
        check_densities::<i32>(kernels, what, &[40_001]);
    });
}

#[test]
fn compaction_of_nothing_writes_zero() {
    each_variant("compact", |kernels, what| {
        for_each_number!(check_compact(kernels, what, 0, &[]));
    });
}

#[test]
fn invalid_histograms_and_compactions_are_rejected() {
    let alloc = |kernels: &Kernels, len| succeed(kernels.device().alloc::<u32>(len));
    assert_eq!(
        error_on_cpu(|it| it.histogram(&succeed(it.device().alloc::<i32>(5)), &alloc(it, 6))),
        "Kernels::histogram: buffer `x` has elements of i32, but u32 is needed; help: pass a \
         buffer of u32"
    );
    assert_eq!(
        error_on_cpu(|it| {
            let x = alloc(it, 5);
            it.histogram(&x, &x)
        }),
        "Kernels::histogram: buffer `counts` is written, but shares bytes 0..20 of its memory \
         with buffer `x`; help: pass buffers or slices that do not overlap"
    );
    assert_eq!(
        error_on_cpu(|it| it.compact(&alloc(it, 5), &alloc(it, 4), &alloc(it, 5), &alloc(it, 1))),
        "Kernels::compact: buffer `flags` has 4 elements, but len=5 needs at least 5; help: pass \
         a longer buffer, or smaller sizes"
    );
    assert_eq!(
        error_on_cpu(|it| it.compact(&alloc(it, 5), &alloc(it, 5), &alloc(it, 5), &alloc(it, 0))),
        "Kernels::compact: buffer `count` has 0 elements, but len=5 needs at least 1; help: pass \
         a longer buffer, or smaller sizes"
    );
}
