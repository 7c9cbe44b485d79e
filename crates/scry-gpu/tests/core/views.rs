//! Tests of handles that share memory: clones, owned slices, views of other types, untyped buffers.

use scry_gpu::{Buffer, DType, Element, GpuError, UntypedBuffer};
use scry_test_support::{STEP, null};

/// Returns the text of a range or argument error.
fn error_text(result: Result<impl std::fmt::Debug, GpuError>) -> String {
    match result {
        Err(error @ (GpuError::BufferAccess(_) | GpuError::Argument(_))) => error.to_string(),
        other => panic!("{other:?} should have been rejected"),
    }
}

#[test]
fn clones_share_and_duplicates_do_not() {
    let gpu = null();
    let buffer = gpu.upload(&[1u32, 2, 3]).unwrap().with_label("x");
    let (shared, copy) = (buffer.clone().with_label("y"), buffer.duplicate().unwrap());
    shared.write_at(1, &[9]).unwrap();
    assert_eq!(buffer.download().unwrap(), [1, 9, 3]);
    assert_eq!(copy.download().unwrap(), [1, 2, 3]);
    assert_eq!([buffer.label(), shared.label(), copy.label()], ["x", "y", "x"]);
    let untyped = buffer.untyped();
    let copy = untyped.duplicate().unwrap();
    untyped.fill_zero().unwrap();
    assert_eq!(copy.typed::<u32>().unwrap().download().unwrap(), [1, 9, 3]);
    let empty = gpu.alloc::<u64>(0).unwrap();
    assert!(empty.duplicate().unwrap().is_empty() && empty.clone().is_empty());
}

#[test]
fn last_handle_frees_memory() {
    let gpu = null();
    let before = gpu.memory_usage();
    let new_allocations = || gpu.memory_usage().allocations - before.allocations;
    let buffer = gpu.alloc::<u32>(1000).unwrap();
    let slice = buffer.owned_slice(10..20).unwrap();
    let view = slice.view_as::<u8>().unwrap().untyped();
    drop(buffer);
    drop(slice);
    assert_eq!(new_allocations(), 1);
    drop(view);
    assert_eq!(new_allocations(), 0);
}

/// A user-defined element type of 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Body {
    id: u32,
    at: [f32; 2],
}

#[test]
fn owned_slices_outlive_their_buffers() {
    fn require_shareable<T: Send + Sync + Clone + 'static>(_: &T) {}
    let gpu = null();
    let buffer = gpu.upload(&[0u16, 1, 2, 3, 4, 5]).unwrap();
    let middle = buffer.owned_slice(1..5).unwrap();
    let inner = middle.slice(1..=2).unwrap().to_owned_slice();
    drop((buffer, middle));
    require_shareable(&inner);
    let inner = std::thread::spawn(move || {
        inner.write_at(1, &[30]).unwrap();
        inner
    });
    let inner = inner.join().unwrap();
    assert_eq!(inner.download().unwrap(), [2, 30]);
    assert_eq!(inner.get(1).unwrap(), 30);
    assert_eq!((inner.len(), inner.byte_size()), (2, 4));
    let untyped = gpu.upload(&[1u32, 2, 3]).unwrap().untyped();
    let last = untyped.slice(2..).unwrap();
    drop(untyped);
    assert_eq!(last.download_bytes().unwrap(), [3, 0, 0, 0]);
    assert_eq!(gpu.upload(&[1u8, 2]).unwrap().slice(1..).unwrap().to_owned_slice().len(), 1);
}

#[test]
fn views_show_the_same_bytes() {
    let gpu = null();
    let bytes = gpu.upload(&(0u8..32).collect::<Vec<_>>()).unwrap();
    let words = bytes.slice(4..28).unwrap().view_as::<u32>().unwrap();
    assert_eq!(words.len(), 6);
    assert_eq!(words.download().unwrap()[0], 0x0706_0504);
    words.fill(0xffff_ffff).unwrap();
    assert_eq!(bytes.download().unwrap()[3..5], [3, 255]);
    assert_eq!(bytes.download().unwrap()[27..29], [255, 28]);
    let bodies = words.view_as::<Body>().unwrap().to_owned_slice();
    bodies.write_at(1, &[Body { id: 7, at: [1.0, 2.0] }]).unwrap();
    assert_eq!(bytes.get(16).unwrap(), 7);
    assert_eq!(bodies.view_as::<f32>().unwrap().get(5).unwrap(), 2.0);
    let wide = bodies.view_as::<[u32; 3]>().unwrap();
    assert_eq!(wide.get(1).unwrap()[0], 7);
    bodies.view_as::<u8>().unwrap().copy_to(bytes.slice(..24).unwrap()).unwrap_err();
}

#[test]
fn rejects_views_that_do_not_fit() {
    let gpu = null();
    let bytes = gpu.alloc::<u8>(30).unwrap().with_label("file");
    assert_eq!(
        error_text(bytes.slice(2..6).unwrap().view_as::<u32>().map(|it| it.len())),
        "Slice::view_as: u32 is aligned to 4 bytes, but the view of buffer `file` starts at byte \
         2; help: start the view at a multiple of 4 bytes, or copy the bytes"
    );
    assert_eq!(
        error_text(bytes.view_as::<[f32; 3]>()),
        "Buffer::view_as: 30 bytes of buffer `file` are not a multiple of the 12 bytes of [f32; \
         3]; help: view the first 24 of them"
    );
    assert_eq!(
        error_text(bytes.untyped().view_as(DType::F64)),
        "UntypedBuffer::view_as: 30 bytes of buffer `file` are not a multiple of the 8 bytes of \
         f64; help: view the first 24 of them"
    );
    assert_eq!(
        error_text(bytes.owned_slice(7..31)),
        "Buffer::owned_slice: elements 7..31 of buffer `file`, which has 30; help: use a range \
         within 0..30 that does not end before its start"
    );
    assert_eq!(
        error_text(bytes.untyped().view_as(DType::U16).unwrap().slice(3..16)),
        "UntypedBuffer::slice: elements 3..16 of buffer `file`, which has 15; help: use a range \
         within 0..15 that does not end before its start"
    );
    // The alignment of the offset in the memory counts, not of that in the owned slice.
    let odd = bytes.owned_slice(1..).unwrap();
    assert!(error_text(odd.owned_slice(2..6).unwrap().view_as::<u32>()).contains("at byte 3"));
    odd.owned_slice(3..7).unwrap().view_as::<u32>().unwrap();
    assert_eq!(
        error_text(bytes.get(30)),
        "Buffer::get: element 30 of buffer `file`, which has 30; help: give an index from 0 to 29"
    );
    assert!(
        error_text(gpu.alloc::<u8>(0).unwrap().get(0)).ends_with("read a buffer that has elements")
    );
}

#[test]
fn empty_views_have_no_effect() {
    let gpu = null();
    let buffer = gpu.upload(&[1u32, 2]).unwrap();
    for at in 0..=2 {
        let nothing = buffer.slice(at..at).unwrap().view_as::<u16>().unwrap();
        assert!(nothing.is_empty() && nothing.download().unwrap().is_empty());
        nothing.fill(1).unwrap();
        nothing.write(&[]).unwrap();
        nothing.copy_to(buffer.slice(..0).unwrap().view_as().unwrap()).unwrap();
        assert!(nothing.to_owned_slice().untyped().download_bytes().unwrap().is_empty());
    }
    let nothing = gpu.alloc_untyped(DType::F32, 0).unwrap();
    nothing.fill_zero().unwrap();
    assert_eq!(nothing.view_as(DType::U8).unwrap().slice(..).unwrap().len(), 0);
    assert!(nothing.typed::<f32>().unwrap().is_empty());
    assert_eq!(buffer.download().unwrap(), [1, 2]);
}

#[test]
fn rejects_overlapping_copies_through_views() {
    let gpu = null();
    let floats = gpu.upload(&[1.0f32; 8]).unwrap().with_label("x");
    let shorts = floats.view_as::<u16>().unwrap();
    let (src, dst) = (shorts.slice(0..8).unwrap(), floats.slice(3..7).unwrap());
    let dst = dst.view_as::<u16>().unwrap();
    assert_eq!(
        error_text(src.copy_to(dst)),
        "Slice::copy_to: source bytes 0..16 and destination bytes 12..28 of buffer `x` overlap; \
         help: copy through another buffer"
    );
    src.copy_to(floats.slice(4..).unwrap().view_as::<u16>().unwrap()).unwrap();
    assert!(error_text(floats.copy_to(&floats.clone())).contains("overlap"));
    assert!(error_text(floats.untyped().copy_to(&floats.untyped())).contains("overlap"));
    let mut batch = gpu.batch();
    assert!(error_text(batch.copy(src, dst).map(|_| ())).contains("overlap"));
}

#[test]
fn untyped_buffers_carry_their_type() {
    let gpu = null();
    for dtype in DType::ALL {
        let size = dtype.size();
        let data: Vec<u8> = (1..=3 * size as u8).collect();
        let buffer = gpu.upload_bytes(dtype, &data).unwrap();
        assert_eq!((buffer.dtype(), buffer.len()), (Some(dtype), 3));
        assert_eq!(buffer.byte_size(), data.len() as u64);
        assert_eq!(buffer.download_bytes().unwrap(), data);
        let mut out = vec![0; size];
        buffer.slice(1..2).unwrap().download_bytes_into(&mut out).unwrap();
        assert_eq!(out, data[size..2 * size]);
        let other = gpu.alloc_untyped(dtype, 3).unwrap();
        assert_eq!(other.download_bytes().unwrap(), vec![0; 3 * size]);
        buffer.copy_to(&other).unwrap();
        other.slice(..1).unwrap().write_bytes(&vec![0xee; size]).unwrap();
        assert_eq!(other.download_bytes().unwrap()[..size], vec![0xee; size]);
        assert_eq!(other.download_bytes().unwrap()[size..], data[size..]);
    }
    let body = Body { id: 1, at: [2.0, 3.0] };
    let untyped = UntypedBuffer::from(gpu.upload(&[body; 2]).unwrap());
    assert_eq!((untyped.dtype(), untyped.len()), (None, 2));
    assert_eq!(untyped.typed::<Body>().unwrap().download().unwrap(), [body; 2]);
    assert!(format!("{untyped:?}").contains("element: \"Body\""), "{untyped:?}");
}

#[test]
fn rejects_views_of_another_type() {
    let gpu = null();
    let buffer = gpu.alloc_untyped(DType::F32, 5).unwrap().with_label("w");
    assert_eq!(
        error_text(buffer.typed::<u32>()),
        "UntypedBuffer::typed: buffer `w` holds f32, not u32; help: use typed::<f32>(), or \
         reinterpret the bytes: view_as(None), then typed"
    );
    error_text(buffer.typed::<[f32; 4]>());
    assert_eq!(buffer.view_as(None).unwrap().typed::<u32>().unwrap().len(), 5);
    assert_eq!(
        error_text(buffer.view_as(None).unwrap().typed::<[f32; 4]>()),
        "UntypedBuffer::typed: 20 bytes of buffer `w` are not a multiple of the 16 bytes of [f32; \
         4]; help: view the first 16 of them"
    );
    let words = gpu.alloc_untyped(DType::U32, 5).unwrap();
    assert_eq!(
        error_text(buffer.copy_to(&words)),
        "UntypedBuffer::copy_to: buffer `w` holds f32, but the buffer holds u32; help: view one as \
         the other's type (UntypedBuffer::view_as)"
    );
    assert_eq!(
        error_text(gpu.upload_bytes(DType::U32, &[0; 7])),
        "Device::upload_bytes: 7 bytes are not a multiple of the 4 bytes of u32; help: give \
         4 or 8 bytes"
    );
    assert_eq!(
        error_text(buffer.write_bytes(&[0; 19])),
        "UntypedBuffer::write_bytes: 19 bytes were given for the 20 bytes of buffer `w`; help: \
         give 20 bytes, or take a slice of the buffer"
    );
    assert!(error_text(buffer.download_bytes_into(&mut [0; 21])).contains("21 bytes"));
    let huge = gpu.alloc_untyped(DType::F64, usize::MAX).unwrap_err().to_string();
    assert!(huge.contains("18446744073709551615 elements of 8 bytes"), "{huge}");
    let foreign = null().alloc_untyped(DType::F32, 5).unwrap();
    assert!(matches!(buffer.copy_to(&foreign), Err(GpuError::WrongDevice(_))));
}

#[test]
fn buffers_and_kernels_return_their_device() {
    let gpu = null();
    let buffer = gpu.upload(&[1u32; 64]).unwrap();
    let kernel = gpu.compile(STEP).unwrap();
    drop(gpu);
    let output = buffer.device().alloc::<u32>(64).unwrap();
    kernel.device().run(&kernel, &[&buffer, &output], 64).unwrap();
    output.untyped().device().wait().unwrap();
    assert!(matches!(null().run(&kernel, &[], 1), Err(GpuError::WrongDevice(_))));
}

#[test]
fn from_fn_passes_the_index() {
    let gpu = null();
    let buffer = Buffer::from_fn(&gpu, 5, |i| i as i16 - 2).unwrap();
    assert_eq!(buffer.download().unwrap(), [-2, -1, 0, 1, 2]);
    assert!(Buffer::from_fn(&gpu, 0, |_| 1.0f32).unwrap().is_empty());
}

/// A device that has compiled its own copy kernel is still dropped with its last handle.
#[test]
fn copy_kernels_release_their_device() {
    let (gpu, log) = super::observed();
    scry_gpu::testing::copy_with_kernel(&gpu, true);
    let large = gpu.alloc::<u32>(1 << 20).unwrap();
    let copy: Buffer<u32> = large.duplicate().unwrap();
    assert_eq!(log.take().dispatches, 1);
    gpu.wait().unwrap();
    drop((gpu, large));
    assert!(!log.is_device_dropped(), "a buffer still uses the device");
    drop(copy);
    assert!(log.is_device_dropped());
}
