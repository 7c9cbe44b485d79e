//! Tests of launches that report failures: which calls return the error, and that the device stays
//! usable.

use scry_gpu::testing::{Counts, Fault, FaultPlan, null_info, reporting, reporting_with_faults};
use scry_gpu::{Buffer, Device, ErrorKind, GpuError, Result};
use scry_test_support::STEP;

/// Opens a device whose launches with these indices, from 0, fail.
fn open_failing(launches: &[u64]) -> Device {
    reporting(null_info(), launches).0
}

/// Returns what a launch reported, from the error.
#[track_caller]
fn problem<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("no failure was reported"),
        Err(error @ GpuError::Kernel(_)) => {
            assert_eq!(error.kind(), ErrorKind::Kernel);
            let GpuError::Kernel(error) = error else { unreachable!() };
            assert_eq!(error.kernel(), "step");
            error.problem().to_owned()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn download_reports_launch_failure() {
    let gpu = open_failing(&[1]);
    let [a, b] = [gpu.upload(&[1u32; 64]).unwrap(), gpu.alloc(64).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    b.download().unwrap();
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    assert_eq!(problem(b.download()), "the launch failed by plan");
    // The error is reported once per thread.
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    b.download().unwrap();
    gpu.wait().unwrap();
}

#[test]
fn device_wait_reports_failure_once() {
    let gpu = open_failing(&[0]);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    gpu.dispatch(STEP, &[&a, &b], 64).unwrap();
    assert_eq!(problem(gpu.wait()), "the launch failed by plan");
    gpu.wait().unwrap();
}

#[test]
fn batch_failure_names_its_launch() {
    let gpu = open_failing(&[70]);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    for _ in 0..100 {
        batch.run(&kernel, &[&a, &b], 64).unwrap();
        batch.copy(&b, &a).unwrap();
    }
    // A rejected launch has no number.
    batch.run(&kernel, &[&a], 64).err().unwrap();
    let download = batch.download(&b).unwrap();
    let ticket = batch.submit_async().unwrap();
    assert_eq!(problem(ticket.wait()), "launch 71 of 100 failed by plan");
    // Every call on this batch reports it.
    assert_eq!(problem(ticket.is_ready()), "launch 71 of 100 failed by plan");
    assert_eq!(problem(download.get()), "launch 71 of 100 failed by plan");
}

#[test]
fn each_replay_reports_its_own_failure() {
    let gpu = open_failing(&[2, 7]);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    for _ in 0..2 {
        batch.run(&kernel, &[&a, &b], 64).unwrap();
    }
    let recording = batch.record().unwrap();
    // All are submitted before any is waited for.
    let tickets: Vec<_> = (0..5).map(|_| recording.replay().unwrap()).collect();
    tickets[0].wait().unwrap();
    assert_eq!(problem(tickets[1].wait()), "launch 1 of 2 failed by plan");
    assert_eq!(problem(tickets[3].wait()), "launch 2 of 2 failed by plan");
    recording.replay().unwrap().wait().unwrap();
}

#[test]
fn timed_and_linearised_launches_report() {
    let mut info = null_info();
    info.limits.max_native_workgroups = [2; 3];
    let (gpu, _) = reporting(info, &[0, 1]);
    let [a, b] = [gpu.alloc::<u32>(512).unwrap(), gpu.alloc(512).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    gpu.run(&kernel, &[&a, &b], 512).unwrap();
    assert_eq!(problem(gpu.wait()), "the launch failed by plan");
    let mut timed = gpu.batch();
    timed.run(&kernel, &[&a, &b], 64).unwrap();
    assert_eq!(problem(timed.submit_timed()), "the launch failed by plan");
}

/// Launches and writes that wait until earlier work releases memory do not return its failures.
#[test]
fn memory_waits_report_no_failure() {
    let gpu = open_failing(&[0]);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    for _ in 0..600 {
        gpu.run(&kernel, &[&a, &b], 64).unwrap();
    }
    a.write(&[7; 64]).unwrap();
    assert_eq!(problem(b.download()), "the launch failed by plan");
}

#[test]
fn reports_are_zeroed_and_fetched() {
    let (gpu, observed) = reporting(null_info(), &[]);
    let [a, b] = [gpu.upload(&[1u32; 64]).unwrap(), gpu.upload(&[1u32; 64]).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    let _ = observed.take();
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    let Counts { dispatches, copies, fills, .. } = observed.take();
    assert_eq!((dispatches, copies, fills), (1, 1, 1));
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], 64).unwrap();
    let recording = batch.record().unwrap();
    let _ = observed.take();
    recording.replay().unwrap().wait().unwrap();
    let Counts { dispatches, copies, fills, .. } = observed.take();
    assert_eq!((dispatches, copies, fills), (1, 1, 1));
}

#[test]
fn kernels_without_reports_add_no_commands() {
    let (gpu, observed) = super::observed();
    let [a, b] = [gpu.upload(&[1u32; 64]).unwrap(), gpu.upload(&[1u32; 64]).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    let _ = observed.take();
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    let Counts { dispatches, copies, fills, .. } = observed.take();
    assert_eq!((dispatches, copies, fills), (1, 0, 0));
}

/// Returns a device after a failed launch, that launch's output, and an unrelated buffer of sevens.
fn after_a_failed_launch() -> (Device, Buffer<u32>, Buffer<u32>) {
    let gpu = open_failing(&[0]);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    let other = gpu.upload(&[7u32; 64]).unwrap();
    let kernel = gpu.compile(STEP).unwrap();
    gpu.run(&kernel, &[&a, &b], 64).unwrap();
    (gpu, b, other)
}

#[test]
fn unrelated_downloads_report_no_failure() {
    let (_gpu, b, other) = after_a_failed_launch();
    let on_other_thread = std::thread::scope(|scope| {
        let read = scope.spawn(|| (other.download(), b.download()));
        read.join().unwrap()
    });
    assert_eq!(on_other_thread.0.unwrap(), [7; 64]);
    assert_eq!(problem(on_other_thread.1), "the launch failed by plan");
}

#[test]
fn downloads_report_other_threads_failures() {
    let (gpu, b, other) = after_a_failed_launch();
    let on_other_thread = std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            let mut batch = gpu.batch();
            let downloads = [batch.download(&other).unwrap(), batch.download(&b).unwrap()];
            let _running = batch.submit_async().unwrap();
            downloads.map(|download| download.get())
        });
        read.join().unwrap()
    });
    let [untouched, failed] = on_other_thread;
    assert_eq!(untouched.unwrap(), [7; 64]);
    assert_eq!(problem(failed), "the launch failed by plan");
}

#[test]
fn replay_fails_without_its_reports() {
    let plan = FaultPlan::new(Fault::OutOfMemory, u64::MAX);
    let (gpu, observed) = reporting_with_faults(null_info(), &[], &plan);
    let [a, b] = [gpu.alloc::<u32>(64).unwrap(), gpu.alloc(64).unwrap()];
    let kernel = gpu.compile(STEP).unwrap();
    let mut batch = gpu.batch();
    batch.run(&kernel, &[&a, &b], 64).unwrap();
    let recording = batch.record().unwrap();
    recording.replay().unwrap().wait().unwrap();
    // The last driver call of a replay, before the wait, fetches the reports.
    let (before, _) = (plan.calls(), observed.take());
    let ticket = recording.replay().unwrap();
    let calls = plan.calls() - before;
    ticket.wait().unwrap();
    assert_eq!(observed.take().dispatches, 1);
    plan.fail_after(calls - 1);
    let error = recording.replay().err().unwrap();
    assert!(matches!(error, GpuError::OutOfMemory(_)), "{error}");
    let Counts { dispatches, copies, .. } = observed.take();
    assert_eq!((dispatches, copies), (1, 0), "the launch ran, its report was not fetched");
    recording.replay().unwrap().wait().unwrap();
    assert_eq!(observed.take().dispatches, 1, "the device goes on");
}
