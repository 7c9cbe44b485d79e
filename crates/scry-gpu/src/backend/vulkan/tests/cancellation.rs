//! Tests of the cancellation of kernels that do not terminate.

use std::time::{Duration, Instant};

use super::*;
use crate::core::driver::{Cancelled, KernelId, SubmissionIndex};

/// A kernel that loops until the first word of its buffer is 7.
const ENDLESS: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;
    @compute @workgroup_size(64)
    fn endless() {
        while atomicLoad(&data[0]) != 7u { atomicAdd(&data[1], 1u); }
        atomicAdd(&data[2], 1u);
    }";

/// The same with barriers in the loop.
const ENDLESS_WITH_BARRIERS: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;
    var<workgroup> found: u32;
    @compute @workgroup_size(64)
    fn endless(@builtin(local_invocation_index) index: u32) {
        while true {
            if index == 0u { found = atomicLoad(&data[0]); }
            if workgroupUniformLoad(&found) == 7u { break; }
            workgroupBarrier();
            atomicAdd(&data[1], 1u);
        }
        workgroupBarrier();
        atomicAdd(&data[2], 1u);
    }";

/// Number of workgroups of an endless launch. Mesa's software driver ends loops after 65535
/// iterations, so that only a launch of many workgroups keeps it busy for seconds. Once cancelled,
/// each invocation still iterates until its first poll, which must take less than the half second
/// after which a device is abandoned.
const GROUPS: u32 = 512;

/// Returns a step that launches a kernel on `data` and, if the kernel has one, on a failure report.
fn launch(driver: &VulkanDriver, kernel: KernelId, data: MemoryId, groups: u32) -> Step {
    let report = driver.report(kernel).map(|_| driver.upload(&[0; 4]));
    let mut bindings = vec![(range(data, 12), true)];
    bindings.extend(report.map(|report| (range(report, 16), true)));
    dispatch(kernel, &bindings, [groups, 1, 1])
}

fn submit(driver: &VulkanDriver, steps: &[Step]) -> SubmissionIndex {
    driver.submit(Work::Once(steps), false).unwrap()
}

/// Cancels the submissions up to `submission`, which must not take long.
fn cancel_up_to(driver: &VulkanDriver, submission: SubmissionIndex) -> Option<Cancelled> {
    let start = Instant::now();
    let cancelled = driver.cancel(submission).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    cancelled
}

#[test]
fn cancellation_keeps_the_device_usable() {
    for driver in drivers() {
        for source in [ENDLESS, ENDLESS_WITH_BARRIERS] {
            check_cancellation(&driver, source);
        }
    }
}

fn check_cancellation(driver: &VulkanDriver, source: &str) {
    let kernel = driver.compile_source(source, GridSource::Native);
    let data = driver.upload(&[0; 3]);
    let endless = launch(driver, kernel, data, GROUPS);
    let marked = range(driver.device_memory(4), 4);
    for pattern in 1..4 {
        let mark = run(Command::Fill { dst: marked, pattern });
        let submission = submit(driver, &[endless.clone(), full_barrier(), mark]);
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        let cancelled = Cancelled { first: submission, last: submission };
        assert_eq!(cancel_up_to(driver, submission), Some(cancelled));
        assert!(driver.wait(submission, Duration::ZERO).unwrap());
        assert_eq!(driver.words(marked), [pattern], "transfers are not skipped");
    }
    // The same kernel still works, and its loop ends if the first word is 7.
    driver.run_steps(&[run(Command::Fill { dst: range(data, 12), pattern: 7 })]);
    driver.run_steps(&[launch(driver, kernel, data, 2)]);
    assert_eq!(driver.words(range(data, 12)), [7, 7, 7 + 128]);
}

#[test]
fn later_submissions_are_cancelled_too() {
    let Some(driver) = driver() else { return };
    let kernel = driver.compile_source(ENDLESS, GridSource::Native);
    let endless = launch(&driver, kernel, driver.upload(&[0; 3]), GROUPS);
    let first = submit(&driver, std::slice::from_ref(&endless));
    let last = submit(&driver, &[full_barrier(), endless]);
    assert_eq!(cancel_up_to(&driver, first), Some(Cancelled { first, last }));
    let none = Cancelled { first: SubmissionIndex(last.0 + 1), last };
    assert_eq!(cancel_up_to(&driver, last), Some(none));
}

/// Without loops no kernel polls, and there is no stop word.
#[test]
fn short_kernels_end_by_themselves() {
    let Some(driver) = driver() else { return };
    let kernel = driver.compile_source(bodies::INCREMENT, GridSource::Native);
    let data = range(driver.upload(&[0; 16]), 64);
    let last = submit(&driver, &[dispatch(kernel, &[(data, true)], [1; 3])]);
    assert!(driver.stop.get().is_none());
    let none = Cancelled { first: SubmissionIndex(last.0 + 1), last };
    assert_eq!(cancel_up_to(&driver, last), Some(none));
    assert_eq!(driver.words(data), [1; 16]);
}

#[test]
fn replays_are_cancelled() {
    let Some(driver) = driver() else { return };
    let kernel = driver.compile_source(ENDLESS, GridSource::Native);
    let steps = [launch(&driver, kernel, driver.upload(&[0; 3]), GROUPS)];
    let recording = driver.record(&steps).unwrap();
    for _ in 0..3 {
        let first = driver.submit(Work::Replay(recording), false).unwrap();
        assert!(!driver.wait(first, Duration::from_millis(20)).unwrap());
        assert_eq!(cancel_up_to(&driver, first), Some(Cancelled { first, last: first }));
        let works = [Work::Once(&[]), Work::Replay(recording), Work::Replay(recording)];
        let first = driver.submit(Work::Sequence(&works), false).unwrap();
        assert!(!driver.wait(first, Duration::from_millis(20)).unwrap());
        assert_eq!(cancel_up_to(&driver, first), Some(Cancelled { first, last: first }));
    }
}
