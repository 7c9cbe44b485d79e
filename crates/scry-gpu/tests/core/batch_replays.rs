//! Tests of batches that contain replays: the submitted work, its failures, and rejections.

use scry_gpu::testing::{Counts, Fault, FaultPlan, null_info, open_with_faults, reporting};
use scry_gpu::{Buffer, Device, GpuError, Recording};
use scry_test_support::{STEP, null};

use super::observed;

/// Returns two buffers, and a recording of `launches` launches from one to the other.
fn recorded(gpu: &Device, launches: usize) -> (Buffer<u32>, Buffer<u32>, Recording) {
    let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    for _ in 0..launches {
        batch.run(&kernel, &[&a, &b], 64).unwrap();
    }
    let recording = batch.record().unwrap();
    (a, b, recording)
}

/// The null device checks that each command waits for those that it conflicts with.
#[test]
fn replays_are_ordered_with_other_commands() {
    let (gpu, log) = observed();
    let (a, b, recording) = recorded(&gpu, 2);
    let mut batch = gpu.batch();
    batch.fill(&a, 1).unwrap().replay(&recording).unwrap().copy(&b, &a).unwrap();
    batch.replay(&recording).unwrap().replay(&recording).unwrap().fill(&b, 3).unwrap();
    let _ = log.take();
    batch.submit().unwrap();
    let Counts { dispatches, copies, fills, .. } = log.take();
    // One more fill: the first submission zeroes `b`, which the batch does not overwrite first.
    assert_eq!((dispatches, copies, fills), (6, 1, 3));
    assert_eq!(b.download().unwrap(), [3; 64]);
}

#[test]
fn batch_with_replays_is_one_submission() {
    let plan = FaultPlan::new(Fault::DriverError, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    let (a, b, recording) = recorded(&gpu, 3);
    for replays in [1, 2, 7] {
        let mut batch = gpu.batch();
        for _ in 0..replays {
            batch.fill(&a, 2).unwrap().replay(&recording).unwrap().fill(&b, 3).unwrap();
        }
        let before = plan.calls();
        drop(batch.submit_async().unwrap());
        assert_eq!(plan.calls() - before, 1, "{replays}");
    }
}

#[test]
fn failed_submission_leaves_batches_usable() {
    let plan = FaultPlan::new(Fault::DriverError, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    let (a, b, recording) = recorded(&gpu, 1);
    let mut batch = gpu.batch();
    plan.fail_after(0);
    let error = batch.replay(&recording).unwrap().fill(&b, 9).unwrap().submit().unwrap_err();
    assert!(error.to_string().contains("Batch::submit"), "{error}");
    // Its memory is still not initialised, and what follows is ordered.
    batch.copy(&a, &b).unwrap().replay(&recording).unwrap().submit().unwrap();
    assert_eq!(b.download().unwrap(), [0; 64]);
}

#[test]
fn submissions_keep_dropped_recordings() {
    let (gpu, log) = observed();
    let (_, b, recording) = recorded(&gpu, 1);
    let mut batch = gpu.batch();
    batch.replay(&recording).unwrap();
    drop(recording);
    batch.fill(&b, 4).unwrap().submit().unwrap();
    assert_eq!(b.download().unwrap(), [4; 64]);
    drop((gpu, batch, b));
    assert!(log.is_device_dropped());
}

#[test]
fn recordings_nest() {
    let (gpu, log) = observed();
    let (a, b, inner) = recorded(&gpu, 2);
    let mut batch = gpu.batch();
    batch.fill(&a, 1).unwrap().replay(&inner).unwrap().replay(&inner).unwrap();
    let outer = batch.copy(&a, &b).unwrap().record().unwrap();
    drop(inner);
    let _ = log.take();
    gpu.batch().replay(&outer).unwrap().submit().unwrap();
    let Counts { dispatches, copies, .. } = log.take();
    assert_eq!((dispatches, copies), (4, 1));
    assert_eq!(b.download().unwrap(), [1; 64]);
}

#[test]
fn timed_batches_time_replayed_launches() {
    let gpu = null();
    let (a, b, recording) = recorded(&gpu, 3);
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    batch.replay(&recording).unwrap().run(&kernel, &[&a, &b], 64).unwrap();
    assert_eq!(batch.replay(&recording).unwrap().submit_timed().unwrap().len(), 7);
}

#[test]
fn replayed_launches_report_failures() {
    // Launches 0 to 2 are those of the first batch.
    let (gpu, _) = reporting(null_info(), &[4]);
    let (a, b, recording) = recorded(&gpu, 2);
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    for fails in [false, true, false] {
        batch.run(&kernel, &[&a, &b], 64).unwrap().replay(&recording).unwrap();
        let result = batch.submit();
        assert_eq!(result.is_err(), fails, "{result:?}");
        if let Err(error) = result {
            assert!(error.to_string().contains("launch 2 of 3 failed by plan"), "{error}");
        }
    }
}

#[test]
fn empty_recordings_add_nothing() {
    let (gpu, log) = observed();
    let empty = gpu.batch().record().unwrap();
    gpu.batch().replay(&empty).unwrap().submit().unwrap();
    assert_eq!(log.take(), Counts::default());
}

#[test]
fn rejects_recordings_with_downloads() {
    let gpu = null();
    let a = gpu.alloc::<u32>(4).unwrap();
    let mut batch = gpu.batch();
    let _download = batch.download(&a).unwrap();
    let recording = batch.record().unwrap();
    let error = batch.replay(&recording).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Batch::replay: the recording has downloads; help: replay it by itself, with \
         `Recording::replay`, or leave the downloads out of the batch that is recorded"
    );
    batch.fill(&a, 1).unwrap().submit().unwrap();
}

#[test]
fn rejects_recordings_of_another_device() {
    let (gpu, other) = (null(), null());
    let (_, _, recording) = recorded(&other, 1);
    let error = gpu.batch().replay(&recording).map(|_| ()).unwrap_err();
    assert!(matches!(error, GpuError::WrongDevice(_)), "{error}");
}
