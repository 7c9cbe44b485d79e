//! Work that does not end, work that fails, and the end of the device.

use std::time::Instant;

use super::*;

/// A submission of a kernel that does not end.
fn hang(driver: &CpuDriver) -> Point {
    let kernel = driver.kernel(&endless());
    let point = driver.submit_once(&[dispatch(kernel, &[], [100, 1, 1])]);
    assert_eq!(driver.wait(point, Duration::from_millis(30)), Ok(false));
    point
}

#[test]
fn endless_work_is_ended_with_what_was_waited_for_and_nothing_else() {
    let driver = driver();
    let a = driver.holding(&[1; 16]);
    let kernel = driver.kernel(&endless());
    let hung = hang(&driver);
    let uploaded = driver.submit_once(&[fill(span(a, 0, 16), 0x0202_0202)]);
    let skipped = driver.submit_once(&[dispatch(kernel, &[], [1; 3])]);
    let later = driver.submit_once(&[fill(span(a, 0, 4), 0x0303_0303)]);
    let start = Instant::now();
    assert_eq!(driver.cancel(skipped), Ok(Some(hung)));
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    // Transfers are never left out.
    assert!(hung < uploaded && uploaded < skipped);
    driver.finish(later);
    let expected = [[3; 4], [2; 4], [2; 4], [2; 4]].concat();
    assert_eq!(driver.bytes(a, 16), expected);
    // Nothing is left to be ended, and nothing new is ended.
    assert_eq!(driver.cancel(later), Ok(Some(Point(later.0 + 1))));
    let again = hang(&driver);
    assert_eq!(driver.cancel(later), Ok(Some(Point(later.0 + 1))));
    assert_eq!(driver.wait(again, Duration::from_millis(30)), Ok(false));
    assert_eq!(driver.cancel(again), Ok(Some(again)));
}

#[test]
fn a_device_that_is_dropped_or_given_up_ends_its_threads() {
    for give_up in [false, true] {
        let driver = driver();
        let has_ended = driver.queue.watch();
        let hung = hang(&driver);
        if give_up {
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
fn a_failure_of_the_machine_is_the_loss_of_the_device_and_nobody_waits() {
    let driver = driver();
    let a = driver.holding(&[1; 32]);
    let kernel = driver.kernel(&empty(1));
    // The machine panics when a binding is not aligned.
    let point = driver.submit_once(&[dispatch(kernel, &[span(a, 1, 16)], [1; 3])]);
    let lost = driver.wait(point, LONG).unwrap_err();
    assert!(matches!(lost, GpuError::DeviceLost(_)), "{lost}");
    assert!(lost.to_string().contains("not aligned to 16 bytes"), "{lost}");
    let refused = driver.submit(Work::Once(&[fill(span(a, 0, 4), 1)]), false);
    assert!(matches!(refused, Err(GpuError::DeviceLost(_))));
    driver.abandon();
}
