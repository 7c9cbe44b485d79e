//! Cancellation of kernels that do not terminate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::*;
use crate::core::submission_queue::MAX_IN_FLIGHT;

/// A kernel that loops until its buffer contains 7, which nothing writes.
const ENDLESS: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>>;
    @compute @workgroup_size(64)
    fn endless() {
        while atomicLoad(&data[0]) != 7u { atomicAdd(&data[1], 1u); }
    }";

/// Opens a driver with exclusive use of the device.
fn driver() -> Option<Opened> {
    opened(Access::exclusive())
}

fn endless(driver: &dyn Driver) -> Step {
    endless_of(driver, 300)
}

/// An endless step of `groups` workgroups.
fn endless_of(driver: &dyn Driver, groups: u32) -> Step {
    let kernel = driver.compile_source(ENDLESS, GridSource::Native);
    let data = driver.upload(&[0, 0]);
    dispatch(kernel, &[(span(data, 8), true)], [groups, 1, 1])
}

/// A step that writes `pattern` to the first word.
fn mark(of: BufferRange, pattern: u32) -> Step {
    run(Command::Fill { dst: BufferRange { size: 4, ..of }, pattern })
}

fn submitted(driver: &dyn Driver, steps: &[Step]) -> SubmissionIndex {
    driver.submit(Work::Once(steps), false).unwrap()
}

/// Cancels up to a submission: quick, unless other processes share the device.
fn ended(driver: &dyn Driver, submission: SubmissionIndex) -> Option<SubmissionIndex> {
    let start = Instant::now();
    let first = driver.cancel(submission).unwrap().map(|ended| ended.first);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    first
}

fn next(submission: SubmissionIndex) -> SubmissionIndex {
    SubmissionIndex(submission.0 + 1)
}

#[test]
fn cancellation_keeps_the_device_usable() {
    let Some(driver) = driver() else { return };
    let marked = span(driver.device_memory(4), 4);
    let endless = endless(&*driver);
    for round in 1..4 {
        let before = submitted(&*driver, &[mark(marked, 0)]);
        assert!(driver.wait(before, LONG).unwrap());
        let submission =
            submitted(&*driver, &[endless.clone(), full_barrier(), mark(marked, round)]);
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        assert_eq!(ended(&*driver, submission), Some(submission));
        assert!(driver.wait(submission, Duration::ZERO).unwrap());
        assert_eq!(driver.words(marked), [round], "transfers are made all the same");
    }
}

#[test]
fn cancels_queued_but_not_later_submissions() {
    let Some(driver) = driver() else { return };
    let marked = span(driver.device_memory(4), 4);
    let endless = endless(&*driver);
    let first = submitted(&*driver, std::slice::from_ref(&endless));
    let second = submitted(&*driver, &[endless.clone(), full_barrier(), endless.clone()]);
    let last = submitted(&*driver, &[mark(marked, 5)]);
    let later = submitted(&*driver, &[full_barrier(), endless, full_barrier(), mark(marked, 6)]);
    assert_eq!(ended(&*driver, last), Some(first));
    assert!(second < last && driver.wait(last, Duration::ZERO).unwrap());
    assert!(!driver.wait(later, Duration::from_millis(20)).unwrap(), "it was not ended");
    assert_eq!(ended(&*driver, later), Some(later));
    assert_eq!(driver.words(marked), [6]);
}

#[test]
fn cancelling_replay_spares_the_next() {
    let Some(driver) = driver() else { return };
    let recording = driver.record(&[endless(&*driver)]).unwrap();
    for _ in 0..3 {
        let submission = driver.submit(Work::Replay(recording), false).unwrap();
        assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
        assert_eq!(ended(&*driver, submission), Some(submission));
    }
}

/// If the driver blocked, the host could not cancel the work in front.
#[test]
fn queue_accepts_submissions_behind_endless_kernel() {
    let Some(driver) = driver() else { return };
    // Few, so that all of them end soon.
    let endless = endless_of(&*driver, 3);
    let have_fit = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            while !have_fit.load(Ordering::Acquire) {
                if start.elapsed() > Duration::from_secs(5) {
                    // Lets the test end.
                    let _ = driver.cancel(SubmissionIndex(u64::MAX));
                    panic!("the driver blocked");
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for _ in 0..MAX_IN_FLIGHT {
            submitted(&*driver, std::slice::from_ref(&endless));
        }
        have_fit.store(true, Ordering::Release);
    });
    let first = SubmissionIndex(1);
    assert_eq!(ended(&*driver, first), Some(first));
    let last = submitted(&*driver, &[]);
    assert!(!driver.wait(last, Duration::from_millis(20)).unwrap(), "others are endless, too");
    assert_eq!(ended(&*driver, last), Some(next(first)));
}

#[test]
fn completed_work_is_not_cancelled() {
    let Some(driver) = driver() else { return };
    let marked = span(driver.device_memory(4), 4);
    let submission = submitted(&*driver, &[mark(marked, 3)]);
    assert!(driver.wait(submission, LONG).unwrap());
    assert_eq!(ended(&*driver, submission), Some(next(submission)));
    assert_eq!(driver.words(marked), [3]);
}

#[test]
fn cancels_endless_kernel_among_launches() {
    let Some(driver) = driver() else { return };
    let kernel = driver.compile_source(APPEND, GridSource::Native);
    let data = driver.upload(&vec![0; 20 * 64]);
    let part = |nth: u64| BufferRange { memory: data, offset: nth * 256, size: 256 };
    let append = |nth| dispatch_with(kernel, &[(part(nth), true)], [1; 3], &[0; 4]);
    let mut steps: Vec<Step> = (0..20).map(append).collect();
    steps.insert(7, endless(&*driver));
    let submission = submitted(&*driver, &steps);
    assert!(!driver.wait(submission, Duration::from_millis(20)).unwrap());
    assert_eq!(ended(&*driver, submission), Some(submission));
    assert_eq!(driver.words(span(data, 20 * 256)), [1; 20 * 64]);
}

#[test]
fn drop_times_out_on_endless_work() {
    let Some(driver) = driver() else { return };
    let submission = submitted(&*driver, &[endless(&*driver)]);
    let start = Instant::now();
    assert!(!driver.wait(submission, Duration::from_millis(1)).unwrap());
    driver.abandon();
    drop(driver);
    assert!(start.elapsed() < Duration::from_secs(1));
}
