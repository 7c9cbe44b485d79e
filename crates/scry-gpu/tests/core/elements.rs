//! Tests of untyped buffers in the transfers of batches and replays.

use scry_gpu::{DType, GpuError};
use scry_test_support::null;

#[test]
fn untyped_transfers_are_ordered() {
    let gpu = null();
    let all = gpu.upload_bytes(DType::U16, &[1, 0, 2, 0, 3, 0]).unwrap();
    let (head, tail) = (all.slice(..1).unwrap(), all.slice(1..).unwrap());
    let copy = gpu.alloc_untyped(DType::U16, 2).unwrap();
    let mut batch = gpu.batch();
    let before = batch.download(&all).unwrap();
    batch.copy(&tail, &copy).unwrap().write(&head, &[9, 8]).unwrap().fill(&tail, 7).unwrap();
    let after = batch.download(&all).unwrap();
    batch.submit().unwrap();
    assert_eq!(before.get().unwrap(), [1, 0, 2, 0, 3, 0]);
    assert_eq!(after.get().unwrap(), [9, 8, 7, 7, 7, 7]);
    assert_eq!(copy.typed::<u16>().unwrap().download().unwrap(), [2, 3]);
}

#[test]
fn views_can_be_transferred() {
    let gpu = null();
    let words = gpu.upload(&[0x0403_0201u32]).unwrap();
    let shorts = words.untyped().view_as(DType::U16).unwrap();
    let low = gpu.alloc_untyped(DType::U16, 1).unwrap();
    gpu.batch().copy(&shorts.slice(..1).unwrap(), &low).unwrap().submit().unwrap();
    assert_eq!(low.download_bytes().unwrap(), [1, 2]);
    let typed = words.slice(..).unwrap();
    gpu.batch().fill(&typed, 5).unwrap().write(typed, &[6]).unwrap().submit().unwrap();
    assert_eq!(words.download().unwrap(), [6]);
}

#[test]
fn rejects_transfers_that_do_not_fit() {
    let gpu = null();
    let f16s = gpu.alloc_untyped(DType::F16, 4).unwrap().with_label("f16s");
    let words = gpu.alloc_untyped(DType::U32, 2).unwrap().with_label("words");
    let short = gpu.alloc_untyped(DType::F16, 3).unwrap().with_label("short");
    let mut batch = gpu.batch();
    let error_of = |rejected: Result<(), GpuError>| rejected.unwrap_err().to_string();
    assert_eq!(
        error_of(batch.copy(&f16s, &words).map(|_| ())),
        "Batch::copy: buffer `f16s` holds f16, but buffer `words` holds u32; help: view one as \
         the other's type (UntypedBuffer::view_as)"
    );
    assert_eq!(
        error_of(batch.copy(&f16s, &short).map(|_| ())),
        "Batch::copy: 4 elements of buffer `f16s` do not fit the 3 elements of buffer `short`; \
         help: copy between slices of the same length"
    );
    assert_eq!(
        error_of(batch.copy(&f16s.slice(..2).unwrap(), &f16s.slice(1..3).unwrap()).map(|_| ())),
        "Batch::copy: source bytes 0..4 and destination bytes 2..6 of buffer `f16s` overlap; \
         help: copy through another buffer"
    );
    assert_eq!(
        error_of(batch.write(&f16s, &[0; 4]).map(|_| ())),
        "Batch::write: 4 bytes were given for the 8 bytes of buffer `f16s`; help: give 8 bytes, \
         or take a slice of the buffer"
    );
    batch.submit().unwrap();
}

#[test]
fn replays_write_bytes_of_untyped_buffers() {
    let gpu = null();
    let (input, output) = (gpu.alloc::<u16>(2).unwrap(), gpu.alloc::<u16>(2).unwrap());
    let recording = gpu.batch().copy(&input, &output).unwrap().record().unwrap();
    let bytes = input.untyped();
    recording.replay_with().write(&bytes, &[1, 0, 2, 0]).unwrap().submit().unwrap().wait().unwrap();
    assert_eq!(output.download().unwrap(), [1, 2]);
    let error = recording.replay_with().write(&bytes, &[1]).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ReplayInputs::write: 1 bytes were given for the 4 bytes of the buffer; help: give 4 \
         bytes, or take a slice of the buffer"
    );
}
