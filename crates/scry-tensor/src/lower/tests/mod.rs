//! Tests of generated kernels by themselves.

use scry_gpu::BackendKind;
use scry_test_support::devices;

use super::{Access, Classes, Conversions, KernelKey, build};
use crate::dtype::DType;
use crate::expr::Expression;

/// Converts words of elements of one type to words of another.
fn convert(
    gpu: &scry_gpu::Device,
    conversions: Conversions,
    [from, to]: [DType; 2],
    words: &[u32],
    results: usize,
) -> Vec<u32> {
    let mut e = Expression::default();
    let x = e.operand(from);
    let map = e.finish(x, to);
    let classes = Classes { rank: 0, operands: vec![Access::Linear] };
    let key = KernelKey { map, classes, in_buffer: false, unroll: 1, in_place: None };
    let kernel = gpu.compile_ir(&build(&key, 2, conversions)).unwrap();
    let x = gpu.upload(words).unwrap();
    let y = gpu.alloc::<u32>(results).unwrap();
    let x = if from == DType::F32 {
        x.untyped().view_as(from.of_buffer()).unwrap()
    } else {
        x.untyped()
    };
    let launch = scry_gpu::Launch::invocations(results as u32).immediates(&[results as u32, 0]);
    gpu.run(&kernel, &[&y, &x], launch).unwrap();
    y.download().unwrap()
}

fn halves(words: &[u32]) -> impl Iterator<Item = u32> {
    words.iter().flat_map(|word| [word & 0xffff, word >> 16])
}

/// By instructions, where a device has exact ones, `f16` is converted to the same bits as by
/// integer operations and on the host; NaN has other bits.
#[test]
fn conversions_of_f16_are_exact() {
    for gpu in devices() {
        let both = match gpu.backend_kind() {
            BackendKind::Cuda => &[Conversions::Integers, Conversions::Native][..],
            _ => &[Conversions::Integers],
        };
        for conversions in both {
            let words: Vec<u32> = (0..1 << 15).map(|n| (2 * n) | (2 * n + 1) << 16).collect();
            let wide = convert(&gpu, *conversions, [DType::F16, DType::F32], &words, 1 << 16);
            for (bits, found) in halves(&words).zip(&wide) {
                let wanted = half::f16::from_bits(bits as u16).to_f32();
                let is_same = wanted.to_bits() == *found;
                assert!(is_same || wanted.is_nan() && f32::from_bits(*found).is_nan(), "{bits:#x}");
            }
            // All exponents and signs, with fractions around those where rounding changes.
            let fractions = [
                0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7f_efff, 0x7f_f000,
                0x7f_ffff,
            ];
            let numbers: Vec<u32> = (0..512u32)
                .flat_map(|top| fractions.map(|fraction| top << 23 | fraction))
                .collect();
            let narrow =
                convert(&gpu, *conversions, [DType::F32, DType::F16], &numbers, numbers.len() / 2);
            for (bits, found) in numbers.iter().zip(halves(&narrow)) {
                let number = f32::from_bits(*bits);
                let (wanted, found) =
                    (half::f16::from_f32(number), half::f16::from_bits(found as u16));
                let is_same = wanted.to_bits() == found.to_bits();
                assert!(is_same || number.is_nan() && found.is_nan(), "{bits:#x}: {found:?}");
            }
        }
    }
}
