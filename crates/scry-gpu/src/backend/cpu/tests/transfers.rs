//! Tests of memory, copies, fills, recordings, and their order.

use super::*;

/// Bytes of a fill or copy that is large enough for the worker thread to execute it.
const LARGE: usize = 8 << 20;

#[test]
fn transfers_move_exactly_their_bytes() {
    let driver = driver();
    let (a, b) = (driver.allocate_with(&[1, 2, 3, 4, 5, 6, 7, 8]), driver.allocate_with(&[9; 8]));
    let steps = [
        copy(range(a, 1, 3), range(b, 2, 3)),
        fill(range(a, 4, 4), 0x0403_0201),
        copy(range(a, 6, 2), range(b, 6, 2)),
    ];
    driver.wait_for(driver.submit_once(&steps));
    let pattern = 0x0403_0201u32.to_ne_bytes();
    assert_eq!(driver.bytes(a, 8), [[1, 2, 3, 4], pattern].concat());
    assert_eq!(driver.bytes(b, 8), [9, 9, 2, 3, 4, 9, pattern[2], pattern[3]]);
}

#[test]
fn submissions_of_any_size_stay_ordered() {
    let driver = driver();
    let device = |size| driver.allocate(MemoryKind::Device, size as u64, "").unwrap();
    let (a, b) = (device(LARGE), device(LARGE));
    let mut last = SubmissionIndex(0);
    for round in 1..=20u32 {
        for (memory, size) in [(a, LARGE), (b, 4)] {
            let submission = driver.submit_once(&[fill(range(memory, 0, size as u64), round)]);
            assert!(submission > last);
            last = submission;
        }
        // All that is copied is `round`, so the copies change nothing if they follow both fills.
        let word = LARGE as u64 - 4;
        last = driver.submit_once(&[
            copy(range(a, word, 4), range(a, 0, 4)),
            copy(range(b, 0, 4), range(a, word, 4)),
        ]);
    }
    driver.wait_for(last);
    let bytes = driver.bytes(a, LARGE);
    assert!(bytes.chunks(4).all(|word| word == 20u32.to_ne_bytes()));
    assert_eq!(driver.bytes(b, 8), [20u32.to_ne_bytes(), [0; 4]].concat());
}

#[test]
fn small_submissions_execute_synchronously() {
    let driver = driver();
    let a = driver.allocate_with(&[1; 16]);
    for _ in 0..100 {
        let submission = driver.submit_once(&[fill(range(a, 0, 16), 3)]);
        assert_eq!(driver.wait(submission, Duration::ZERO), Ok(true));
    }
    assert!(driver.queue.has_no_worker());
}

#[test]
fn recordings_are_executed_each_time() {
    let driver = driver();
    let (a, b) = (driver.allocate_with(&[1, 2, 3, 4]), driver.allocate_with(&[0; 4]));
    let recording = driver.record(&[copy(range(a, 0, 4), range(b, 0, 4))]).unwrap();
    for value in 0..5 {
        driver.write(a, 0, &[value; 4]).unwrap();
        driver.wait_for(driver.submit(Work::Replay(recording), false).unwrap());
        assert_eq!(driver.bytes(b, 4), [value; 4]);
    }
    driver.free_recording(recording);
    assert!(is_driver_error(driver.submit(Work::Replay(recording), false)));
}

#[test]
fn memory_may_be_freed_while_used() {
    let driver = driver();
    for _ in 0..10 {
        let device = || driver.allocate(MemoryKind::Device, LARGE as u64, "").unwrap();
        let (a, b) = (device(), device());
        let steps = [
            fill(range(a, 0, LARGE as u64), 7),
            copy(range(a, 0, LARGE as u64), range(b, 0, LARGE as u64)),
        ];
        let submission = driver.submit_once(&steps);
        driver.free(a);
        driver.free(b);
        driver.wait_for(submission);
        assert!(is_driver_error(driver.read(a, 0, &mut [0])));
    }
    assert_eq!(driver.heap.allocated(), 0);
}

#[test]
fn invalid_steps_are_rejected() {
    let driver = driver();
    let a = driver.allocate_with(&[1; 8]);
    let kernel = driver.kernel(&empty_kernel(1));
    let invalid = [
        vec![fill(range(a, 4, 8), 1)],
        vec![copy(range(a, 0, 4), range(a, u64::MAX, 4))],
        vec![dispatch(kernel, &[], [1; 3])],
        vec![dispatch(kernel, &[range(a, 0, 9)], [1; 3])],
        vec![dispatch(kernel, &[range(a, 0, 8)], [u32::MAX; 3])],
        // No step is executed if only the last one is invalid.
        vec![fill(range(a, 0, 8), 0), dispatch(kernel, &[], [1; 3])],
    ];
    for steps in invalid {
        assert!(is_driver_error(driver.submit(Work::Once(&steps), false)), "{steps:?}");
        assert!(is_driver_error(driver.record(&steps)), "{steps:?}");
    }
    driver.free_kernel(kernel);
    let freed = [dispatch(kernel, &[range(a, 0, 8)], [1; 3])];
    assert!(is_driver_error(driver.submit(Work::Once(&freed), false)));
    assert!(is_driver_error(driver.write(a, 1, &[0; 8])));
    assert!(is_driver_error(driver.read(a, 9, &mut [])));
    assert_eq!(driver.bytes(a, 8), [1; 8]);
}

#[test]
fn out_of_memory_reports_allocated_bytes() {
    let mut info = info::info();
    info.memory = 1 << 20;
    let driver = CpuDriver::new(info, Machine::new(1));
    let half = driver.allocate(MemoryKind::Device, 1 << 19, "").unwrap();
    let error = driver.allocate(MemoryKind::Device, (1 << 19) + 1, "weights").unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, GpuError::OutOfMemory(_)), "{text}");
    assert!(text.contains("524289 bytes requested for `weights`;"), "{text}");
    let unnamed = driver.allocate(MemoryKind::Device, (1 << 19) + 1, "").unwrap_err().to_string();
    assert!(unnamed.contains("524289 bytes requested for an unnamed buffer;"), "{unnamed}");
    assert!(text.contains("buffers hold 524288 of 1048576 bytes"), "{text}");
    driver.free(half);
    driver.allocate(MemoryKind::Device, 1 << 20, "").unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn allocation_beyond_available_memory_fails() {
    let mut info = info::info();
    info.memory = u64::MAX;
    let driver = CpuDriver::new(info, Machine::new(1));
    let size = info::available_memory().unwrap() + (4 << 30);
    let error = driver.allocate(MemoryKind::Device, size, "").unwrap_err().to_string();
    assert!(error.contains("buffers hold 0 of "), "{error}");
    assert!(error.contains("and the system has "), "{error}");
}

#[test]
fn each_launch_is_timed() {
    let driver = driver();
    let a = driver.allocate_with(&[1; 16]);
    let kernel = driver.kernel(&empty_kernel(1));
    let launch = || dispatch(kernel, &[range(a, 0, 16)], [4, 1, 1]);
    let steps = [launch(), fill(range(a, 0, 16), 0), launch(), launch()];
    let timed = driver.submit(Work::Once(&steps), true).unwrap();
    let untimed = driver.submit_once(&steps);
    driver.wait_for(untimed);
    assert_eq!(driver.timings(timed).unwrap().len(), 3);
    assert!(driver.timings(timed).is_err(), "times are returned once");
    assert!(driver.timings(untimed).is_err());
    let discarded = driver.submit(Work::Once(&steps), true).unwrap();
    driver.wait_for(discarded);
    driver.discard_timings(discarded);
    assert!(driver.timings(discarded).is_err());
}

#[test]
fn discarded_times_are_not_kept() {
    let driver = driver();
    let hung = driver.kernel(&endless_kernel());
    let kernel = driver.kernel(&empty_kernel(0));
    let hung = driver.submit_once(&[dispatch(hung, &[], [100, 1, 1])]);
    let timed = driver.submit(Work::Once(&[dispatch(kernel, &[], [1; 3])]), true).unwrap();
    driver.discard_timings(timed);
    driver.cancel(hung).unwrap();
    driver.wait_for(timed);
    assert!(driver.timings(timed).is_err());
}

#[test]
fn zeroing_untouched_memory_is_skipped() {
    let driver = driver();
    let memory = driver.allocate(MemoryKind::Device, 64, "").unwrap();
    let is_untouched =
        || super::super::read(&driver.blocks).get(memory).is_some_and(|block| block.is_untouched());
    driver.wait_for(driver.submit_once(&[fill(range(memory, 0, 64), 0)]));
    assert!(is_untouched());
    let kernel = driver.kernel(&empty_kernel(1));
    driver.wait_for(driver.submit_once(&[dispatch(kernel, &[range(memory, 0, 64)], [1; 3])]));
    assert!(!is_untouched());
    driver.wait_for(driver.submit_once(&[fill(range(memory, 0, 32), 1)]));
    driver.wait_for(driver.submit_once(&[fill(range(memory, 16, 32), 0)]));
    let expected = [1u32.to_ne_bytes(); 4].concat();
    assert_eq!(driver.bytes(memory, 64), [expected, vec![0; 48]].concat());
}
