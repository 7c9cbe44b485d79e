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
fn sequences_are_one_submission() {
    drivers().iter().for_each(|driver| bodies::sequences_are_one_submission(driver));
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

#[test]
fn partial_submission_keeps_its_error() {
    for driver in drivers() {
        let data = range(driver.upload(&[0; 16]), 64);
        let kernel = driver.compile_source(bodies::INCREMENT, GridSource::Native);
        let freed = driver.compile_source(DOUBLE, GridSource::Native);
        driver.free_kernel(freed);
        let step = dispatch(kernel, &[(data, true)], [1; 3]);
        let mut steps: Vec<Step> =
            (0..300).flat_map(|_| [step.clone(), compute_barrier()]).collect();
        steps.push(dispatch(freed, &[(data, true)], [1; 3]));
        let expected = driver.submit(Work::Once(&steps[600..]), false).unwrap_err();
        assert_eq!(driver.submit(Work::Once(&steps), false).unwrap_err(), expected);
        // The chunks before the one with the failing step were executed.
        let words = driver.words(data);
        assert!(words[0] > 0 && words == [words[0]; 16], "{words:?}");
    }
}

/// NVIDIA's driver deadlocked here before its devices were reused.
///
/// In a child process without the validation layer, whose table of devices is not synchronised: it
/// reported objects of other devices, or crashed.
#[test]
fn devices_close_while_threads_exit() {
    if is_child() {
        open_in_threads();
    } else if driver().is_some() {
        let output = run_in_child("submissions::devices_close_while_threads_exit", &[]);
        assert!(output.contains("1 passed"), "{output}");
    }
}

fn open_in_threads() {
    for _ in 0..5 {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    let driver = driver().unwrap();
                    let memory = driver.device_memory(64);
                    let fill = Command::Fill { dst: range(memory, 64), pattern: 7 };
                    driver.run_steps(&[run(fill)]);
                    assert_eq!(driver.words(range(memory, 64)), [7; 16]);
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
