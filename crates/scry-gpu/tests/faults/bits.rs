//! Fault 30: bit patterns of special floats, through buffers and copies.

use scry_gpu::{Device, Element, f16};

use super::devices::devices_and_null;

/// Quiet and signalling NaNs with payloads, infinities, zeros, and subnormal numbers.
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

const F64: [u64; 7] = [
    0x7ff8_0000_0000_0000,
    0xfff8_dead_beef_0001,
    0x7ff0_0000_0000_0001,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x800f_ffff_ffff_ffff,
    0x7fef_ffff_ffff_ffff,
];

const F16: [u16; 7] = [0x7e00, 0xfe01, 0x7c01, 0x8000, 0x0001, 0x83ff, 0x7bff];

/// All paths of a value through buffers without arithmetic.
fn survive<T: Element, B: PartialEq + std::fmt::Debug>(
    gpu: &Device,
    values: &[T],
    bits: impl Fn(&T) -> B,
) {
    let of = |values: &[T]| values.iter().map(&bits).collect::<Vec<B>>();
    let expected = of(values);
    let buffer = gpu.upload(values).unwrap();
    assert_eq!(of(&buffer.download().unwrap()), expected, "{gpu:?}");
    let copy = gpu.alloc::<T>(values.len()).unwrap();
    buffer.copy_to(&copy).unwrap();
    assert_eq!(of(&copy.download().unwrap()), expected, "{gpu:?}");
    let mut batch = gpu.batch();
    batch.write(&copy, values).unwrap();
    let read = batch.download(&copy).unwrap();
    batch.submit().unwrap();
    assert_eq!(of(&read.get().unwrap()), expected, "{gpu:?}");
    for (value, bits) in values.iter().zip(&expected) {
        copy.fill(*value).unwrap();
        let filled = of(&copy.download().unwrap());
        assert!(filled.iter().all(|it| it == bits), "{gpu:?}: {filled:?} is not {bits:?}");
    }
}

#[test]
fn fault_30_special_floats_keep_their_bits() {
    for gpu in devices_and_null() {
        survive(&gpu, &F32.map(f32::from_bits), |value| value.to_bits());
        survive(&gpu, &F64.map(f64::from_bits), |value| value.to_bits());
        survive(&gpu, &F16.map(f16::from_bits), |value| value.to_bits());
    }
}
