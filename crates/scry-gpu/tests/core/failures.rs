//! Tests of failing driver calls: each call of `run_job` fails once. It must succeed by a retry, or
//! return a typed error, and then leak nothing and, unless it is lost, leave the device usable.
//! `fault_N` in a test name is the number in `docs/faults.md`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Device, GpuError, Launch};
use scry_test_support::STEP;

/// Runs work with transfers, launches, a timed batch and recordings, and returns the contents of a
/// buffer.
fn run_job(gpu: &Device) -> Result<Vec<u32>, GpuError> {
    let a = gpu.upload(&[1u32; 100])?;
    let b = gpu.alloc::<u32>(100)?;
    let kernel = gpu.compile(STEP)?;
    gpu.run(&kernel, &[&a, &b], 100)?;
    gpu.run(&kernel, &[&a, &b], Launch::indirect(&a))?;
    b.fill(3)?;
    let mut batch = gpu.batch();
    batch.copy(&b, &a)?.write(&b, &[4; 100])?;
    let download = batch.download(&a)?;
    batch.submit()?;
    let mut timed = gpu.batch();
    timed.run(&kernel, &[&a, &b], 100)?;
    timed.submit_timed()?;
    let mut batch = gpu.batch();
    batch.copy(&a, &b)?;
    let recording = batch.record()?;
    recording.replay()?.wait()?;
    recording.replay_with().write(&a, &[3; 100])?.submit()?.wait()?;
    b.download()?;
    download.get()
}

/// Returns the number of driver calls of a job that succeeds.
fn count_calls() -> u64 {
    let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    assert_eq!(run_job(&gpu).unwrap(), [3; 100]);
    plan.calls()
}

/// Runs a job on a new device whose driver call number `n`, from 0, fails.
fn run_with_fault(fault: Fault, n: u64) -> (Device, Arc<FaultPlan>, Result<Vec<u32>, GpuError>) {
    let plan = FaultPlan::new(fault, n);
    let gpu = open_with_faults("null", &plan).unwrap();
    let result = run_job(&gpu);
    (gpu, plan, result)
}

#[test]
fn fault_03_out_of_memory_at_each_call() {
    for n in 0..count_calls() {
        let (gpu, plan, result) = run_with_fault(Fault::OutOfMemory, n);
        assert!(plan.has_failed());
        match result {
            Err(GpuError::OutOfMemory(_)) => {}
            // Some allocations succeed when they are retried after pending work is done.
            Ok(bytes) => assert_eq!(bytes, [3; 100]),
            Err(other) => panic!("call {n}: {other}"),
        }
        // The device works, and only its staging memory is allocated.
        assert_eq!(run_job(&gpu).unwrap(), [3; 100], "after call {n}");
        gpu.wait().unwrap();
        assert!(gpu.memory_usage().allocations <= 2, "call {n}: {:?}", gpu.memory_usage());
    }
}

#[test]
fn fault_26_device_loss_at_each_call() {
    for n in 0..count_calls() {
        let (gpu, _, result) = run_with_fault(Fault::DeviceLost, n);
        assert!(matches!(result, Err(GpuError::DeviceLost(_))), "call {n}: {result:?}");
        assert!(matches!(gpu.alloc::<u32>(1), Err(GpuError::DeviceLost(_))), "call {n}");
        assert!(matches!(gpu.wait(), Err(GpuError::DeviceLost(_))), "call {n}");
    }
    // A new device can be opened.
    let (_, _, result) = run_with_fault(Fault::DeviceLost, u64::MAX);
    assert_eq!(result.unwrap(), [3; 100]);
}

/// The null driver checks the barriers of each submission.
#[test]
fn panicking_submissions_keep_the_order() {
    let plan = FaultPlan::new(Fault::Panic, u64::MAX);
    let gpu = open_with_faults("null", &plan).unwrap();
    let [a, b, c] = [1, 2, 3].map(|word| gpu.upload(&[word; 4]).unwrap());
    a.fill(4).unwrap();
    plan.fail_after(0);
    // Its barrier, between the fill and the copy, is not submitted.
    catch_unwind(AssertUnwindSafe(|| a.copy_to(&b))).unwrap_err();
    a.copy_to(&c).unwrap();
    assert_eq!((b.download().unwrap(), c.download().unwrap()), (vec![2; 4], vec![4; 4]));
}

#[test]
fn failed_batch_is_empty() {
    for is_recorded in [false, true] {
        let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
        let gpu = open_with_faults("null", &plan).unwrap();
        let buffer = gpu.upload(&[7u32; 4]).unwrap();
        let mut batch = gpu.batch();
        batch.fill(&buffer, 1).unwrap();
        let download = batch.download(&buffer).unwrap();
        plan.fail_after(0);
        let error = match is_recorded {
            true => batch.record().map(|_| ()).unwrap_err(),
            false => batch.submit().unwrap_err(),
        };
        assert!(matches!(error, GpuError::OutOfMemory(_)), "{error}");
        batch.submit().unwrap();
        assert_eq!(buffer.download().unwrap(), [7; 4], "nothing is left of the failed submission");
        assert!(download.get().is_err());
        batch.fill(&buffer, 2).unwrap().submit().unwrap();
        assert_eq!(buffer.download().unwrap(), [2; 4]);
    }
}
