//! Tests of submissions: those that all GPU drivers run, and Vulkan's own.

use super::*;

#[test]
fn dispatch_chains_run_in_order() {
    drivers().iter().for_each(|driver| bodies::dispatch_chains_run_in_order(driver));
}

#[test]
fn step_lists_run_once_in_order() {
    drivers().iter().for_each(|driver| bodies::step_lists_run_once_in_order(driver));
}

#[test]
fn each_launch_uses_its_own_bindings() {
    drivers().iter().for_each(|driver| bodies::each_launch_uses_its_own_bindings(driver));
}

#[test]
fn command_buffers_are_reused() {
    for driver in drivers() {
        bodies::submission_indices_increase(&driver);
        // At most 8 submissions are in flight.
        let count = driver.queue.command_buffers();
        assert!(count <= 10, "{count} command buffers");
    }
}

#[test]
fn empty_submissions_finish_in_order() {
    drivers().iter().for_each(|driver| bodies::empty_submissions_finish_in_order(driver));
}

#[test]
fn replays_may_overlap() {
    drivers().iter().for_each(|driver| bodies::replays_may_overlap(driver));
}

#[test]
fn wait_ends_at_its_timeout() {
    drivers().iter().for_each(|driver| bodies::wait_ends_at_its_timeout(driver));
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
fn dropping_a_busy_driver_waits() {
    let Some(driver) = driver() else { return };
    bodies::dropping_a_busy_driver_waits(Box::new(driver));
}

#[test]
fn abandoned_driver_rejects_work() {
    let Some(driver) = driver() else { return };
    bodies::abandoned_driver_rejects_work(Box::new(driver));
}

/// NVIDIA's driver deadlocked here before its devices were reused.
#[test]
fn devices_close_while_threads_exit() {
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
                    driver.run_steps(&[run(fill)]);
                    assert_eq!(driver.words(span(memory, 64)), [7; 16]);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
