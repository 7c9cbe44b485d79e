//! Tests of reading, writing, filling, copying and slicing buffers.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use proptest::prelude::*;
use scry_gpu::{Device, GpuError};
use scry_test_support::null;

use super::observed;

fn access_error(result: Result<impl std::fmt::Debug, GpuError>) -> String {
    match result {
        Err(error @ GpuError::BufferAccess(_)) => error.to_string(),
        other => panic!("{other:?} is not a range error"),
    }
}

#[test]
fn upload_download_round_trip() {
    let gpu = null();
    let data: Vec<f32> = (0..1000).map(|i| i as f32 * 0.5).collect();
    let buffer = gpu.upload(&data).unwrap();
    assert_eq!((buffer.len(), buffer.byte_size(), buffer.is_empty()), (1000, 4000, false));
    assert_eq!(buffer.download().unwrap(), data);
    let mut out = vec![0.0; 1000];
    buffer.download_into(&mut out).unwrap();
    assert_eq!(out, data);
}

#[test]
fn transfers_larger_than_staging_are_exact() {
    let gpu = null();
    let data: Vec<u32> = (0..5_000_003u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let buffer = gpu.upload(&data).unwrap();
    assert!(buffer.download().unwrap() == data);
    assert!(
        buffer.slice(1_048_575..4_000_001).unwrap().download().unwrap()
            == data[1_048_575..4_000_001]
    );
}

#[test]
fn chunked_upload_needs_no_zeroing() {
    let (gpu, log) = observed();
    let data = vec![7u32; 3 << 20];
    let buffer = gpu.upload(&data).unwrap();
    let counts = log.take();
    assert_eq!(counts.fills, 0);
    assert!(counts.copies > 1, "{counts:?}");
    assert!(buffer.download().unwrap() == data);
    let uneven = vec![7u8; (4 << 20) + 1];
    assert!(gpu.upload(&uneven).unwrap().download().unwrap() == uneven);
}

#[test]
fn fault_06_tiny_sizes_round_trip() {
    let gpu = null();
    for len in 0..6 {
        let data: Vec<u8> = (1..=len).collect();
        let buffer = gpu.upload(&data).unwrap();
        assert_eq!(buffer.len(), usize::from(len));
        assert_eq!(buffer.download().unwrap(), data);
        let zeros = gpu.alloc::<u8>(len.into()).unwrap();
        assert_eq!(zeros.download().unwrap(), vec![0; len.into()]);
    }
}

#[test]
fn fault_01_absurd_sizes_fail_harmlessly() {
    let gpu = null();
    for len in [1usize << 40, usize::MAX, usize::MAX / 4] {
        let error = gpu.alloc::<f32>(len).unwrap_err();
        assert!(
            matches!(&error, GpuError::TooLarge(error) if error.limit_name() == "max_buffer_size"),
            "{error}"
        );
    }
    assert_eq!(gpu.alloc::<f32>(3).unwrap().download().unwrap(), [0.0; 3]);
}

#[test]
fn new_buffers_are_zeroed_on_demand() {
    let (gpu, log) = observed();
    let buffer = gpu.alloc::<u64>(33).unwrap();
    assert_eq!(log.take().fills, 0, "nothing is submitted for an unused buffer");
    assert_eq!(buffer.download().unwrap(), [0; 33]);
    assert_eq!(log.take().fills, 1);
    buffer.download().unwrap();
    assert_eq!(log.take().fills, 0);
    let overwritten = gpu.alloc::<u64>(33).unwrap();
    overwritten.write(&[7; 33]).unwrap();
    assert_eq!(log.take().fills, 0, "an upload that covers all needs no zeros under it");
    assert_eq!(overwritten.download().unwrap(), [7; 33]);
    let partly_written = gpu.alloc::<u64>(33).unwrap();
    partly_written.write_at(32, &[7]).unwrap();
    assert_eq!(log.take().fills, 1);
    assert_eq!(partly_written.download().unwrap()[..32], [0; 32]);
}

#[test]
fn slices_access_only_their_range() {
    let gpu = null();
    let buffer = gpu.upload(&[0u16; 10]).unwrap();
    buffer.write_at(3, &[1, 2, 3]).unwrap();
    let slice = buffer.slice(4..=5).unwrap();
    assert_eq!(slice.download().unwrap(), [2, 3]);
    slice.write(&[8, 9]).unwrap();
    assert_eq!(buffer.download().unwrap(), [0, 0, 0, 1, 8, 9, 0, 0, 0, 0]);
    buffer.write_at(10, &[]).unwrap();
    assert!(buffer.slice(10..).unwrap().is_empty());
}

#[test]
fn rejects_invalid_ranges() {
    let gpu = null();
    let buffer = gpu.upload(&[0u32; 4]).unwrap().with_label("x");
    assert_eq!(
        access_error(buffer.slice(3..5).map(|_| ())),
        "Buffer::slice: elements 3..5 of buffer `x`, which has 4; help: use a range within 0..4 \
         that does not end before its start"
    );
    #[expect(clippy::reversed_empty_ranges, reason = "it must be rejected")]
    let reversed = buffer.slice(3..2).map(|_| ());
    access_error(reversed);
    access_error(buffer.slice(..=usize::MAX).map(|_| ()));
    access_error(buffer.write_at(usize::MAX, &[1]));
    assert_eq!(
        access_error(buffer.write(&[1; 5])),
        "Buffer::write: 5 elements were passed for 4 elements of buffer `x`; help: pass 4 \
         elements, or use a slice of the buffer"
    );
    let (part, mut batch) = (buffer.slice(1..).unwrap(), gpu.batch());
    let named = [
        (access_error(part.write(&[1; 5])), "Slice::write: 5 elements"),
        (access_error(buffer.download_into(&mut [0; 3])), "Buffer::download_into: 3 elements"),
        (access_error(part.download_into(&mut [0; 4])), "Slice::download_into: 4 elements"),
        (access_error(batch.write(&buffer, &[1; 5]).map(|_| ())), "Batch::write: 5 elements"),
        (access_error(batch.write(part, &[1; 4]).map(|_| ())), "Batch::write: 4 elements"),
    ];
    for (error, prefix) in named {
        assert!(error.starts_with(prefix), "{error}");
    }
}

#[test]
fn rejects_invalid_copies() {
    let (gpu, other) = (null(), null());
    let a = gpu.upload(&[1u32, 2, 3, 4]).unwrap();
    let b = gpu.alloc::<u32>(3).unwrap().with_label("b");
    assert_eq!(
        access_error(a.copy_to(&b)),
        "Buffer::copy_to: 4 elements of the buffer do not fit the 3 elements of buffer `b`; help: \
         copy between slices of the same length"
    );
    let (first, last) = (a.slice(0..3).unwrap(), a.slice(1..4).unwrap());
    assert_eq!(
        access_error(gpu.batch().copy(first, last).map(|_| ())),
        "Batch::copy: source bytes 0..12 and destination bytes 4..16 of the buffer overlap; help: \
         copy through another buffer"
    );
    for (error, prefix) in [
        (access_error(last.copy_to(&a)), "Slice::copy_to: 3 elements"),
        (access_error(gpu.copy_buffer(first, last)), "Device::copy_buffer: source bytes"),
    ] {
        assert!(error.starts_with(prefix), "{error}");
    }
    a.slice(0..2).unwrap().copy_to(a.slice(2..4).unwrap()).unwrap();
    assert_eq!(a.download().unwrap(), [1, 2, 1, 2]);
    let foreign = other.alloc::<u32>(4).unwrap();
    assert!(matches!(a.copy_to(&foreign), Err(GpuError::WrongDevice(_))));
    assert!(matches!(gpu.copy_buffer(&foreign, &foreign), Err(GpuError::WrongDevice(_))));
}

#[test]
fn empty_buffers_stay_empty() {
    let gpu = null();
    let empty = gpu.upload::<f64>(&[]).unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.download().unwrap(), []);
    empty.fill(1.0).unwrap();
    empty.write(&[]).unwrap();
    empty.copy_to(&gpu.alloc(0).unwrap()).unwrap();
}

/// Checks that a fill of `len` elements leaves the elements before and after them unchanged.
fn assert_fill_is_exact<T: scry_gpu::Element + PartialEq + std::fmt::Debug>(
    gpu: &Device,
    len: usize,
    value: T,
    background: T,
) {
    let buffer = gpu.upload(&vec![background; len + 3]).unwrap();
    buffer.slice(1..len + 1).unwrap().fill(value).unwrap();
    let mut expected = vec![background; len + 3];
    expected[1..len + 1].fill(value);
    assert_eq!(buffer.download().unwrap(), expected);
}

#[test]
fn large_fills_set_exactly_their_range() {
    assert_fill_is_exact(&null(), 100_001, [1u64, 2, 3], [9; 3]);
    assert_fill_is_exact(&null(), 300_001, 7u8, 1);
}

proptest! {
    #[test]
    fn fills_set_exactly_their_range(len in 0usize..200, value: [u8; 12]) {
        let gpu = null();
        assert_fill_is_exact(&gpu, len, value, [9; 12]);
        assert_fill_is_exact(&gpu, len, value[0], 9);
        assert_fill_is_exact(&gpu, len, u16::from_ne_bytes([value[0], value[1]]), 9);
        assert_fill_is_exact(&gpu, len, u32::from(value[0]) << 7, 9);
        assert_fill_is_exact(&gpu, len, f64::from(value[3]), 9.0);
        assert_fill_is_exact(&gpu, len, [value[0]; 3], [9; 3]);
    }
}
