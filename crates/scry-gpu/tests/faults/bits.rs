//! Tests of fault 30: buffers and copies preserve the bits of special floats.

use scry_gpu::{Device, Element, f16};

use super::devices::devices_and_null;

/// Quiet and signalling NaNs with payloads, infinities, zeros, subnormals, and the smallest and
/// largest normal numbers.
const F32: [u32; 14] = [
    0x7fc0_0000,
    0xffc0_0001,
    0x7fc1_2345,
    0x7f80_0001,
    0xffbf_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x7f7f_ffff,
];

/// NaNs, negative zero, subnormals and the largest number.
const F64: [u64; 7] = [
    0x7ff8_0000_0000_0000,
    0xfff8_dead_beef_0001,
    0x7ff0_0000_0000_0001,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x800f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
];

/// As [`F64`].
const F16: [u16; 7] = [0x7e00, 0xfe01, 0x7c01, 0x8000, 0x0001, 0x83ff, 0x7bff];

/// Checks that values keep their bits in uploads, copies, fills and downloads.
fn assert_bits_are_kept<T: Element, B: PartialEq + std::fmt::Debug>(
    gpu: &Device,
    values: &[T],
    bits: impl Fn(&T) -> B,
) {
    let all_bits = |values: &[T]| values.iter().map(&bits).collect::<Vec<B>>();
    let expected = all_bits(values);
    let buffer = gpu.upload(values).unwrap();
    assert_eq!(all_bits(&buffer.download().unwrap()), expected, "{gpu:?}");
    let copy = gpu.alloc::<T>(values.len()).unwrap();
    buffer.copy_to(&copy).unwrap();
    assert_eq!(all_bits(&copy.download().unwrap()), expected, "{gpu:?}");
    let mut batch = gpu.batch();
    batch.write(&copy, values).unwrap();
    let read = batch.download(&copy).unwrap();
    batch.submit().unwrap();
    assert_eq!(all_bits(&read.get().unwrap()), expected, "{gpu:?}");
    for (value, bits) in values.iter().zip(&expected) {
        copy.fill(*value).unwrap();
        let filled = all_bits(&copy.download().unwrap());
        assert!(filled.iter().all(|it| it == bits), "{gpu:?}: {filled:?} is not {bits:?}");
    }
}

#[test]
fn fault_30_special_floats_keep_their_bits() {
    for gpu in devices_and_null() {
        assert_bits_are_kept(&gpu, &F32.map(f32::from_bits), |value| value.to_bits());
        assert_bits_are_kept(&gpu, &F64.map(f64::from_bits), |value| value.to_bits());
        assert_bits_are_kept(&gpu, &F16.map(f16::from_bits), |value| value.to_bits());
    }
}
