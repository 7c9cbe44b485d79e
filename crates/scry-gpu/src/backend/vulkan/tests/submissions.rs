//! Submissions, as all drivers take them, and what is Vulkan's own about them.

use super::*;

#[test]
fn a_chain_of_dispatches_runs_in_order() {
    drivers().iter().for_each(|driver| bodies::a_chain_of_dispatches_runs_in_order(driver));
}

#[test]
fn a_list_of_any_length_runs_once_and_in_order() {
    drivers().iter().for_each(|driver| bodies::a_list_of_any_length_runs_once_and_in_order(driver));
}

#[test]
fn a_launch_has_its_own_bindings_whatever_came_before() {
    drivers()
        .iter()
        .for_each(|driver| bodies::a_launch_has_its_own_bindings_whatever_came_before(driver));
}

#[test]
fn points_grow_and_command_buffers_are_used_again() {
    for driver in drivers() {
        bodies::points_grow_and_waits_for_any_of_them_end(&driver);
        let made = driver.queue.command_buffers();
        assert!(made <= 10, "{made} command buffers for 8 at a time");
    }
}

#[test]
fn an_empty_submission_is_done_after_those_before_it() {
    drivers()
        .iter()
        .for_each(|driver| bodies::an_empty_submission_is_done_after_those_before_it(driver));
}

#[test]
fn a_recording_replays_and_replays_may_overlap() {
    drivers().iter().for_each(|driver| bodies::a_recording_replays_and_replays_may_overlap(driver));
}

#[test]
fn a_wait_ends_at_its_timeout() {
    drivers().iter().for_each(|driver| bodies::a_wait_ends_at_its_timeout(driver));
}

#[test]
fn each_dispatch_is_timed_once() {
    drivers().iter().for_each(|driver| bodies::each_dispatch_is_timed_once(driver));
}

#[test]
fn threads_share_a_driver() {
    drivers().iter().for_each(|driver| bodies::threads_share_a_driver(driver));
}

#[test]
fn dropping_a_busy_driver_waits_for_it() {
    let Some(driver) = driver() else { return };
    bodies::dropping_a_busy_driver_waits_for_it(Box::new(driver));
}

#[test]
fn an_abandoned_driver_neither_waits_nor_takes_work() {
    let Some(driver) = driver() else { return };
    bodies::an_abandoned_driver_neither_waits_nor_takes_work(Box::new(driver));
}

/// NVIDIA's driver hung here, before its devices were kept open.
#[test]
fn devices_close_while_other_threads_end() {
    if driver().is_none() {
        return;
    }
    for _ in 0..5 {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    let driver = driver().unwrap();
                    let memory = driver.device_memory(64);
                    let fill = Command::Fill { dst: span(memory, 64), pattern: 7 };
                    driver.done(&[run(fill)]);
                    assert_eq!(driver.words(span(memory, 64)), [7; 16]);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
