//! Tests of cancellation, failures, and the drop of the device.

use std::time::Instant;

use super::*;

/// Submits a kernel that does not terminate.
fn submit_endless(driver: &CpuDriver) -> SubmissionIndex {
    let kernel = driver.kernel(&endless_kernel());
    let submission = driver.submit_once(&[dispatch(kernel, &[], [100, 1, 1])]);
    assert_eq!(driver.wait(submission, Duration::from_millis(30)), Ok(false));
    submission
}

/// Cancels the submissions up to `submission`; returns the first one that was ended.
fn cancel_up_to(driver: &CpuDriver, submission: SubmissionIndex) -> SubmissionIndex {
    driver.cancel(submission).unwrap().expect("work can be cancelled").first
}

#[test]
fn cancel_stops_only_earlier_work() {
    let driver = driver();
    let a = driver.allocate_with(&[1; 16]);
    let kernel = driver.kernel(&endless_kernel());
    let hung = submit_endless(&driver);
    let uploaded = driver.submit_once(&[fill(range(a, 0, 16), 0x0202_0202)]);
    let skipped = driver.submit_once(&[dispatch(kernel, &[], [1; 3])]);
    let later = driver.submit_once(&[fill(range(a, 0, 4), 0x0303_0303)]);
    let start = Instant::now();
    assert_eq!(cancel_up_to(&driver, skipped), hung);
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    // Transfers are never skipped.
    assert!(hung < uploaded && uploaded < skipped);
    driver.wait_for(later);
    let expected = [[3; 4], [2; 4], [2; 4], [2; 4]].concat();
    assert_eq!(driver.bytes(a, 16), expected);
    // A cancellation ends neither finished submissions nor later ones.
    assert_eq!(cancel_up_to(&driver, later), SubmissionIndex(later.0 + 1));
    let again = submit_endless(&driver);
    assert_eq!(cancel_up_to(&driver, later), SubmissionIndex(later.0 + 1));
    assert_eq!(driver.wait(again, Duration::from_millis(30)), Ok(false));
    assert_eq!(cancel_up_to(&driver, again), again);
}

#[test]
fn dropped_devices_end_their_threads() {
    for abandon in [false, true] {
        let driver = driver();
        let has_ended = driver.queue.exit_check();
        let hung = submit_endless(&driver);
        if abandon {
            driver.abandon();
            assert!(matches!(driver.wait(hung, LONG), Err(GpuError::DeviceLost(_))));
        }
        assert!(!has_ended());
        let start = Instant::now();
        drop(driver);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert!(has_ended());
    }
}

#[test]
fn work_stopped_by_a_loss_is_never_done() {
    let driver = driver();
    let hung = submit_endless(&driver);
    driver.abandon();
    // Time for the kernel to stop.
    std::thread::sleep(Duration::from_millis(100));
    let waited = driver.wait(hung, LONG);
    assert!(matches!(waited, Err(GpuError::DeviceLost(_))), "{waited:?}");
}

#[test]
fn machine_panic_loses_device() {
    let driver = driver();
    let a = driver.allocate_with(&[1; 32]);
    let kernel = driver.kernel(&empty_kernel(1));
    // The machine panics when a binding is not aligned.
    let submission = driver.submit_once(&[dispatch(kernel, &[range(a, 1, 16)], [1; 3])]);
    let lost = driver.wait(submission, LONG).unwrap_err();
    assert!(matches!(lost, GpuError::DeviceLost(_)), "{lost}");
    assert!(lost.to_string().contains("not aligned to 16 bytes"), "{lost}");
    let result = driver.submit(Work::Once(&[fill(range(a, 0, 4), 1)]), false);
    assert!(matches!(result, Err(GpuError::DeviceLost(_))));
    driver.abandon();
}
