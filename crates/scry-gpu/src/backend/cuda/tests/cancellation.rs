//! Tests of the cancellation of kernels that do not terminate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;
use crate::core::submission_queue::MAX_IN_FLIGHT;

/// A kernel that loops until the first word of its buffer is 7, which nothing writes there.
const ENDLESS: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;
    @compute @workgroup_size(64)
    fn endless() {
        while atomicLoad(&data[0]) != 7u { atomicAdd(&data[1], 1u); }
    }";

/// Opens a driver with exclusive use of the device.
fn driver() -> Option<TestDriver> {
    open(Access::exclusive())
}

/// Returns an endless step.
fn endless(driver: &dyn Driver) -> Step {
    endless_with_groups(driver, 300)
}

/// Returns an endless step of `groups` workgroups.
fn endless_with_groups(driver: &dyn Driver, groups: u32) -> Step {
    let kernel = driver.compile_source(ENDLESS, GridSource::Native);
    let data = driver.upload(&[0, 0]);
    dispatch(kernel, &[(range(data, 8), true)], [groups, 1, 1])
}

/// Returns a step that writes `pattern` to the first word of a range.
fn mark(range: BufferRange, pattern: u32) -> Step {
    run(Command::Fill { dst: BufferRange { size: 4, ..range }, pattern })
}

fn submit(driver: &dyn Driver, steps: &[Step]) -> SubmissionIndex {
    driver.submit(Work::Once(steps), false).unwrap()
}

/// Cancels the submissions up to `submission`, which must not take long; returns the first
/// cancelled one. It may take seconds if other processes share the device.
fn cancel_up_to(driver: &dyn Driver, submission: SubmissionIndex) -> Option<SubmissionIndex> {
    let start = Instant::now();
    let first = driver.cancel(submission).unwrap().map(|cancelled| cancelled.first);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    first
}

fn next(submission: SubmissionIndex) -> SubmissionIndex {
    SubmissionIndex(submission.0 + 1)
}

#[test]
fn cancellation_keeps_the_device_usable() {
    let Some(driver) = driver() else { return };
    let marked = range(driver.device_memory(4), 4);
    let endless = endless(&*driver);
    for round in 1..4 {
        let before = submit(&*driver, &[mark(marked, 0)]);
        assert!(driver.wait(before, LONG).unwrap());
        let submission = submit(&*driver, &[endless.clone(), full_barrier(), mark(marked, round)]);
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        assert_eq!(cancel_up_to(&*driver, submission), Some(submission));
        assert!(driver.wait(submission, Duration::ZERO).unwrap());
        assert_eq!(driver.words(marked), [round], "transfers are not skipped");
    }
}

#[test]
fn cancels_queued_but_not_later_submissions() {
    let Some(driver) = driver() else { return };
    let marked = range(driver.device_memory(4), 4);
    let endless = endless(&*driver);
    let first = submit(&*driver, std::slice::from_ref(&endless));
    let second = submit(&*driver, &[endless.clone(), full_barrier(), endless.clone()]);
    let last = submit(&*driver, &[mark(marked, 5)]);
    let later = submit(&*driver, &[full_barrier(), endless, full_barrier(), mark(marked, 6)]);
    assert_eq!(cancel_up_to(&*driver, last), Some(first));
    assert!(second < last && driver.wait(last, Duration::ZERO).unwrap());
    assert!(!driver.wait(later, Duration::from_millis(20)).unwrap(), "it was not cancelled");
    assert_eq!(cancel_up_to(&*driver, later), Some(later));
    assert_eq!(driver.words(marked), [6]);
}

#[test]
fn cancelled_replay_spares_the_next() {
    let Some(driver) = driver() else { return };
    let recording = driver.record(&[endless(&*driver)]).unwrap();
    for _ in 0..3 {
        let submission = driver.submit(Work::Replay(recording), false).unwrap();
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        assert_eq!(cancel_up_to(&*driver, submission), Some(submission));
    }
}

#[test]
fn cancelled_sequence_keeps_its_transfers() {
    let Some(driver) = driver() else { return };
    let marked = range(driver.device_memory(4), 4);
    let recording = driver.record(&[full_barrier(), endless(&*driver)]).unwrap();
    for round in 1..4 {
        let (before, after) = ([mark(marked, 0)], [full_barrier(), mark(marked, round)]);
        let works = [Work::Once(&before), Work::Replay(recording), Work::Once(&after)];
        let submission = driver.submit(Work::Sequence(&works), false).unwrap();
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        assert_eq!(cancel_up_to(&*driver, submission), Some(submission));
        assert_eq!(driver.words(marked), [round]);
    }
}

/// If the driver blocked, the host could not cancel the work in front.
#[test]
fn queue_accepts_submissions_behind_endless_kernel() {
    let Some(driver) = driver() else { return };
    // Few workgroups, so that all submissions end soon.
    let endless = endless_with_groups(&*driver, 3);
    let all_submitted = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while !all_submitted.load(Ordering::Acquire) {
                if start.elapsed() > Duration::from_secs(5) {
                    // Unblocks the test's thread.
                    let _ = driver.cancel(SubmissionIndex(u64::MAX));
                    panic!("the driver blocked");
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for _ in 0..MAX_IN_FLIGHT {
            submit(&*driver, std::slice::from_ref(&endless));
        }
        all_submitted.store(true, Ordering::Release);
    });
    let first = SubmissionIndex(1);
    assert_eq!(cancel_up_to(&*driver, first), Some(first));
    let last = submit(&*driver, &[]);
    assert!(
        !driver.wait(last, Duration::from_millis(20)).unwrap(),
        "the submissions before it are endless"
    );
    assert_eq!(cancel_up_to(&*driver, last), Some(next(first)));
}

#[test]
fn completed_work_is_not_cancelled() {
    let Some(driver) = driver() else { return };
    let marked = range(driver.device_memory(4), 4);
    let submission = submit(&*driver, &[mark(marked, 3)]);
    assert!(driver.wait(submission, LONG).unwrap());
    assert_eq!(cancel_up_to(&*driver, submission), Some(next(submission)));
    assert_eq!(driver.words(marked), [3]);
}

#[test]
fn cancels_endless_kernel_among_launches() {
    let Some(driver) = driver() else { return };
    let kernel = driver.compile_source(APPEND, GridSource::Native);
    let data = driver.upload(&vec![0; 20 * 64]);
    let part = |index: u64| BufferRange { memory: data, offset: index * 256, size: 256 };
    let append = |index| dispatch_with(kernel, &[(part(index), true)], [1; 3], &[0; 4]);
    let mut steps: Vec<Step> = (0..20).map(append).collect();
    steps.insert(7, endless(&*driver));
    let submission = submit(&*driver, &steps);
    assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
    assert_eq!(cancel_up_to(&*driver, submission), Some(submission));
    assert_eq!(driver.words(range(data, 20 * 256)), [1; 20 * 64]);
}

#[test]
fn abandoned_driver_drops_without_waiting() {
    let Some(driver) = driver() else { return };
    let submission = submit(&*driver, &[endless(&*driver)]);
    let start = Instant::now();
    assert!(!driver.wait(submission, Duration::from_millis(1)).unwrap());
    driver.abandon();
    drop(driver);
    assert!(start.elapsed() < Duration::from_secs(1));
}
