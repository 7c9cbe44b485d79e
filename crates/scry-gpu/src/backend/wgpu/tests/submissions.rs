//! Tests of submissions that all GPU drivers run.

use std::time::Duration;

use super::*;

macro_rules! driver_tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            drivers().iter().for_each(|driver| bodies::$name(driver));
        })*
    };
}

driver_tests! {
    dispatch_chains_run_in_order
    step_lists_run_once_in_order
    each_launch_uses_its_own_bindings
    submission_indices_increase
    empty_submissions_finish_in_order
    replays_may_overlap
    sequences_are_one_submission
    wait_ends_at_its_timeout
    each_dispatch_is_timed_once
    threads_share_a_driver
}

#[test]
fn dropping_a_busy_driver_waits() {
    let Some(driver) = driver() else { return };
    bodies::dropping_a_busy_driver_waits(Box::new(driver));
}

#[test]
fn abandoned_driver_rejects_work() {
    let Some(driver) = driver() else { return };
    bodies::abandoned_driver_rejects_work(Box::new(driver));
}

/// Waits that time out, of which most do, while other threads submit, poll and finish work.
#[test]
fn waits_time_out_while_others_submit() {
    const ROUNDS: u32 = 200;
    let Some(driver) = driver() else { return };
    let driver = &driver;
    let kernel = driver.compile_source(bodies::INCREMENT, GridSource::Native);
    let increment_repeatedly = || {
        let data = range(driver.upload(&[0; 16]), 64);
        let steps = [dispatch(kernel, &[(data, true)], [1; 3])];
        for _ in 0..ROUNDS {
            let submission = driver.submit(Work::Once(&steps), false).unwrap();
            while !driver.wait(submission, Duration::from_micros(20)).unwrap() {}
        }
        assert_eq!(driver.words(data), [ROUNDS; 16]);
    };
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(increment_repeatedly);
        }
    });
}

#[test]
fn long_timed_lists_use_several_query_sets() {
    let Some(driver) = driver() else { return };
    let data = range(driver.upload(&[0; 16]), 64);
    let kernel = driver.compile_source(bodies::INCREMENT, GridSource::Native);
    let count = wgpu::QUERY_SET_MAX_QUERIES as usize / 2 + 3;
    let steps = vec![dispatch(kernel, &[(data, true)], [1; 3]); count];
    let submission = driver.submit(Work::Once(&steps), true).unwrap();
    assert!(driver.wait(submission, crate::backend::tests::LONG).unwrap());
    let expected = if driver.0.gpu.has_timestamps { count } else { 0 };
    assert_eq!(driver.timings(submission).unwrap().len(), expected);
    assert_eq!(driver.words(data), [count as u32; 16]);
}
