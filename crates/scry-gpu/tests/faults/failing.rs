//! Tests of faults 3, 5, 26 and 28: a driver whose n-th call fails, for each call of a fixed job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Device, GpuError, Result};
use scry_test_support::{STEP, devices, null};

use super::devices::{check_works, executes_kernels, selectors};

/// Runs work with transfers, launches, a timed batch and a recording, and returns the contents that
/// it downloads.
fn run_job(gpu: &Device) -> Result<Vec<u32>> {
    let a = gpu.upload(&[1u32; 100])?;
    let b = gpu.alloc::<u32>(100)?;
    let kernel = gpu.compile(STEP)?;
    gpu.run(&kernel, &[&a, &b], 100)?;
    let mut all = b.download()?;
    b.fill(3)?;
    let mut batch = gpu.batch();
    batch.copy(&b, &a)?.write(&b, &[4; 100])?;
    let download = batch.download(&a)?;
    batch.submit()?;
    let mut timed = gpu.batch();
    timed.run(&kernel, &[&a, &b], 100)?;
    timed.submit_timed()?;
    let mut batch = gpu.batch();
    batch.copy(&b, &a)?;
    let recording = batch.record()?;
    recording.replay()?.wait()?;
    all.extend(download.get()?);
    all.extend(a.download()?);
    Ok(all)
}

/// Returns what [`run_job`] returns without a fault.
fn expected(gpu: &Device) -> Vec<u32> {
    let parts = if executes_kernels(gpu) { [2, 3, 4] } else { [0, 3, 4] };
    parts.map(|value| [value; 100]).concat()
}

/// Opens a device whose driver call with index `n` fails.
fn open_failing(selector: &str, fault: Fault, n: u64) -> (Device, Arc<FaultPlan>) {
    let plan = FaultPlan::new(fault, n);
    let gpu = open_with_faults(selector, &plan).expect("the device opened before");
    (gpu, plan)
}

/// Minimum number of driver calls of the job. The actual number varies, because waits poll the
/// device.
const MIN_CALLS: u64 = 20;

/// Calls `check` with devices whose n-th call fails, for each call of the job.
fn for_each_call(fault: Fault, selector: &str, check: impl Fn(&Device, Result<Vec<u32>>, &str)) {
    for n in 0.. {
        let (gpu, plan) = open_failing(selector, fault, n);
        let result = run_job(&gpu);
        if !plan.has_failed() {
            assert_eq!(result.unwrap(), expected(&gpu));
            assert!(n >= MIN_CALLS, "{selector}: only {n} calls");
            return;
        }
        check(&gpu, result, &format!("{selector}, call {n}"));
    }
}

#[test]
fn fault_03_out_of_memory_at_each_call() {
    for selector in selectors() {
        let failures = AtomicUsize::new(0);
        for_each_call(Fault::OutOfMemory, &selector, |gpu, result, context| {
            match result {
                Err(GpuError::OutOfMemory(_)) => _ = failures.fetch_add(1, Ordering::Relaxed),
                // Some allocations succeed when they are retried after pending work is done.
                Ok(values) => assert_eq!(values, expected(gpu), "{context}"),
                Err(other) => panic!("{context}: {other}"),
            }
            assert_eq!(run_job(gpu).unwrap(), expected(gpu), "after {context}");
            gpu.wait().unwrap();
            let usage = gpu.memory_usage();
            assert!(usage.allocations <= 2, "{context}: more than staging: {usage:?}");
        });
        let failures = failures.into_inner();
        assert!(failures > 10, "{selector}: only {failures} calls failed");
    }
}

#[test]
fn fault_05_download_retries_after_out_of_memory() {
    let data: Vec<u32> = (0..5000).collect();
    for selector in selectors() {
        let mut failures = 0;
        for call in 0.. {
            let (gpu, plan) = open_failing(&selector, Fault::OutOfMemory, u64::MAX);
            let buffer = gpu.upload(&data).unwrap();
            plan.fail_after(call);
            let result = buffer.download();
            if !plan.has_failed() {
                break;
            }
            match result {
                Err(GpuError::OutOfMemory(_)) => failures += 1,
                Ok(values) => assert_eq!(values, data, "{selector}, call {call}"),
                Err(other) => panic!("{selector}, call {call}: {other}"),
            }
            assert_eq!(buffer.download().unwrap(), data, "{selector}, {call}");
        }
        assert!(failures >= 2, "{selector}: only {failures} calls failed");
    }
}

#[test]
fn fault_26_device_loss_at_each_call() {
    let is_lost = |result: Result<()>| matches!(result, Err(GpuError::DeviceLost(_)));
    for selector in selectors() {
        for_each_call(Fault::DeviceLost, &selector, |gpu, result, context| {
            assert!(is_lost(result.map(|_| ())), "{context}");
            assert!(is_lost(gpu.alloc::<u32>(1).map(|_| ())), "{context}");
            assert!(is_lost(gpu.upload(&[1u32]).map(|_| ())), "{context}");
            assert!(is_lost(gpu.compile(STEP).map(|_| ())), "{context}");
            assert!(is_lost(gpu.wait()), "{context}");
            assert!(is_lost(gpu.batch().submit()), "{context}");
        });
        // A new device can be opened.
        check_works(&Device::open(&selector).unwrap());
    }
}

#[test]
fn fault_26_hung_device_wakes_every_waiter() {
    // Every wait hangs.
    let (gpu, plan) = open_failing("null", Fault::Hang, 0);
    let buffer = gpu.upload(&[1u32; 4]).unwrap();
    buffer.fill(2).unwrap();
    gpu.set_time_limit(Some(Duration::from_millis(300)));
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| gpu.wait())).collect();
        let ended: Vec<_> = waiting.into_iter().map(|it| it.join().unwrap()).collect();
        let timeouts = ended.iter().filter(|it| matches!(it, Err(GpuError::Timeout(_))));
        assert!(timeouts.count() >= 1, "{ended:?}");
        let is_lost =
            |it: &Result<()>| matches!(it, Err(GpuError::Timeout(_) | GpuError::DeviceLost(_)));
        assert!(ended.iter().all(is_lost), "{ended:?}");
    });
    assert!(plan.has_failed());
    check_works(&null());
}

/// A kernel whose duration is proportional to `rounds`; its result is not used.
const BUSY: &str = "
    @group(0) @binding(0) var<storage, read> rounds: u32;
    @group(0) @binding(1) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn busy(@builtin(global_invocation_id) id: vec3<u32>) {
        var y = x[id.x];
        for (var i = 0u; i < rounds; i++) {
            for (var j = 0u; j < 1000u; j++) { y = y * 1664525u + 1013904223u; }
        }
        x[id.x] = y;
    }";

/// Keeps a device busy for about a second.
fn keep_busy(gpu: &Device, invocations: usize) {
    let kernel = gpu.compile(BUSY).unwrap();
    let x = gpu.alloc::<u32>(invocations).unwrap();
    let time = |rounds: u32| {
        let rounds = gpu.upload(&[rounds]).unwrap();
        let start = Instant::now();
        gpu.run(&kernel, &[&rounds, &x], invocations).unwrap();
        gpu.wait().unwrap();
        start.elapsed()
    };
    // Enough rounds for a measurement.
    let mut rounds = 1u32;
    let mut took = time(rounds);
    while took < Duration::from_millis(20) && rounds < 100_000 {
        rounds *= 4;
        took = time(rounds);
    }
    let rounds_per_second = f64::from(rounds) / took.as_secs_f64();
    let rounds = gpu.upload(&[rounds_per_second.min(1e6) as u32]).unwrap();
    gpu.run(&kernel, &[&rounds, &x], invocations).unwrap();
}

#[test]
fn fault_26_failed_submission_has_no_effect() {
    let count = "
        @group(0) @binding(0) var<storage, read_write> x: array<u32>;
        @compute @workgroup_size(1) fn count() { x[0] += 1u; }";
    const INVOCATIONS: usize = 128 << 10;
    for shared in devices() {
        let selector = format!("{}:{}", shared.backend_kind(), shared.info().index);
        let gpu = Device::open(&selector).unwrap();
        let kernel = gpu.compile(count).unwrap();
        let counter = gpu.upload(&[0u32]).unwrap();
        keep_busy(&gpu, INVOCATIONS);
        let done = AtomicBool::new(false);
        let (mut submitted, mut interrupted) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    gpu.interrupt();
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            // A launch waits while too many submissions are pending; `interrupt` ends that wait.
            while submitted < 2000 && interrupted < 5 {
                match gpu.run(&kernel, &[&counter], 1) {
                    Ok(()) => submitted += 1,
                    Err(GpuError::Interrupted(_)) => interrupted += 1,
                    Err(other) => panic!("{gpu:?}: {other}"),
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(counter.download().unwrap(), [submitted], "{gpu:?}, {interrupted} interrupted");
        if interrupted == 0 {
            println!(
                "skipped on {gpu:?}: {submitted} submissions are below the limit of pending work"
            );
        }
    }
}

#[test]
fn fault_03_failed_replay_keeps_pending_memory() {
    let (gpu, plan) = open_failing("null", Fault::OutOfMemory, u64::MAX);
    {
        let (a, b) = (gpu.alloc::<u32>(64).unwrap(), gpu.alloc::<u32>(64).unwrap());
        let mut batch = gpu.batch();
        batch.copy(&a, &b).unwrap();
        let recording = batch.record().unwrap();
        // The first submission zeroes the buffer; the second one is the replay, and fails.
        plan.fail_after(1);
        assert!(recording.replay().is_err());
    }
    assert!(gpu.memory_usage().allocations >= 1, "memory was freed while it was being zeroed");
    gpu.wait().unwrap();
    assert_eq!(gpu.memory_usage().allocations, 0);
}

#[test]
fn fault_03_failed_replay_exposes_no_memory() {
    for selector in selectors() {
        let (gpu, plan) = open_failing(&selector, Fault::OutOfMemory, u64::MAX);
        let filled = gpu.alloc::<u32>(16).unwrap();
        let mut batch = gpu.batch();
        batch.fill(&filled, 7).unwrap();
        let recording = batch.record().unwrap();
        // The recording overwrites the whole buffer, which is therefore not zeroed; its replay
        // fails.
        plan.fail_after(0);
        assert!(recording.replay().is_err(), "{selector}");
        assert_eq!(filled.download().unwrap(), [0; 16], "{selector}: uninitialised memory");
        recording.replay().unwrap().wait().unwrap();
        assert_eq!(filled.download().unwrap(), [7; 16], "{selector}");
    }
}

#[test]
fn fault_28_pending_work_is_bounded() {
    let (gpu, _) = open_failing("null", Fault::Hang, 0);
    let buffer = gpu.alloc::<u32>(4).unwrap();
    gpu.set_time_limit(Some(Duration::from_millis(50)));
    let mut submitted = 0;
    let error = loop {
        match buffer.fill(submitted) {
            Ok(()) => submitted += 1,
            Err(error) => break error,
        }
        assert!(submitted < 100_000, "work in flight is not bounded");
    };
    assert!(matches!(error, GpuError::Timeout(_)), "{error}");
    assert!(submitted >= 64, "only {submitted} submissions fit");
}
