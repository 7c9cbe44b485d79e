//! Memory, copies, fills, recordings, and their order.

use super::*;

/// Bytes of a fill or copy that the worker thread executes.
const LARGE: usize = 8 << 20;

#[test]
fn writes_copies_fills_and_reads_work() {
    let driver = driver();
    let (a, b) = (driver.holding(&[1, 2, 3, 4, 5, 6, 7, 8]), driver.holding(&[9; 8]));
    let steps = [
        copy(span(a, 1, 3), span(b, 2, 3)),
        fill(span(a, 4, 4), 0x0403_0201),
        copy(span(a, 6, 2), span(b, 6, 2)),
    ];
    driver.finish(driver.submit_once(&steps));
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
            let submission = driver.submit_once(&[fill(span(memory, 0, size as u64), round)]);
            assert!(submission > last);
            last = submission;
        }
        // All words of one buffer, and the first word of the other, have the previous fill's value.
        let word = LARGE as u64 - 4;
        last = driver.submit_once(&[
            copy(span(a, word, 4), span(a, 0, 4)),
            copy(span(b, 0, 4), span(a, word, 4)),
        ]);
    }
    driver.finish(last);
    let bytes = driver.bytes(a, LARGE);
    assert!(bytes.chunks(4).all(|word| word == 20u32.to_ne_bytes()));
    assert_eq!(driver.bytes(b, 8), [20u32.to_ne_bytes(), [0; 4]].concat());
}

#[test]
fn small_submissions_execute_synchronously() {
    let driver = driver();
    let a = driver.holding(&[1; 16]);
    for _ in 0..100 {
        let submission = driver.submit_once(&[fill(span(a, 0, 16), 3)]);
        assert_eq!(driver.wait(submission, Duration::ZERO), Ok(true));
    }
    assert!(driver.queue.has_no_worker());
}

#[test]
fn a_recording_is_executed_each_time() {
    let driver = driver();
    let (a, b) = (driver.holding(&[1, 2, 3, 4]), driver.holding(&[0; 4]));
    let recording = driver.record(&[copy(span(a, 0, 4), span(b, 0, 4))]).unwrap();
    for value in 0..5 {
        driver.write(a, 0, &[value; 4]).unwrap();
        driver.finish(driver.submit(Work::Replay(recording), false).unwrap());
        assert_eq!(driver.bytes(b, 4), [value; 4]);
    }
    driver.free_recording(recording);
    assert!(is_refused(driver.submit(Work::Replay(recording), false)));
}

#[test]
fn memory_may_be_freed_in_use() {
    let driver = driver();
    for _ in 0..10 {
        let device = || driver.allocate(MemoryKind::Device, LARGE as u64, "").unwrap();
        let (a, b) = (device(), device());
        let steps = [
            fill(span(a, 0, LARGE as u64), 7),
            copy(span(a, 0, LARGE as u64), span(b, 0, LARGE as u64)),
        ];
        let submission = driver.submit_once(&steps);
        driver.free(a);
        driver.free(b);
        driver.finish(submission);
        assert!(is_refused(driver.read(a, 0, &mut [0])));
    }
    assert_eq!(driver.heap.allocated(), 0);
}

#[test]
fn invalid_steps_are_refused() {
    let driver = driver();
    let a = driver.holding(&[1; 8]);
    let kernel = driver.kernel(&empty(1));
    let refused = [
        vec![fill(span(a, 4, 8), 1)],
        vec![copy(span(a, 0, 4), span(a, u64::MAX, 4))],
        vec![dispatch(kernel, &[], [1; 3])],
        vec![dispatch(kernel, &[span(a, 0, 9)], [1; 3])],
        vec![dispatch(kernel, &[span(a, 0, 8)], [u32::MAX; 3])],
        // No step is executed if only the last one is invalid.
        vec![fill(span(a, 0, 8), 0), dispatch(kernel, &[], [1; 3])],
    ];
    for steps in refused {
        assert!(is_refused(driver.submit(Work::Once(&steps), false)), "{steps:?}");
        assert!(is_refused(driver.record(&steps)), "{steps:?}");
    }
    driver.free_kernel(kernel);
    let released = [dispatch(kernel, &[span(a, 0, 8)], [1; 3])];
    assert!(is_refused(driver.submit(Work::Once(&released), false)));
    assert!(is_refused(driver.write(a, 1, &[0; 8])));
    assert!(is_refused(driver.read(a, 9, &mut [])));
    assert_eq!(driver.bytes(a, 8), [1; 8]);
}

#[test]
fn out_of_memory_reports_allocated_bytes() {
    let mut info = info::info();
    info.memory = 1 << 20;
    let driver = CpuDriver::new(info, Machine::new(1));
    let held = driver.allocate(MemoryKind::Device, 1 << 19, "").unwrap();
    let error = driver.allocate(MemoryKind::Device, (1 << 19) + 1, "weights").unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, GpuError::OutOfMemory(_)), "{text}");
    assert!(text.contains("524289 bytes requested for `weights`;"), "{text}");
    let unnamed = driver.allocate(MemoryKind::Device, (1 << 19) + 1, "").unwrap_err().to_string();
    assert!(unnamed.contains("524289 bytes requested for an unnamed buffer;"), "{unnamed}");
    assert!(text.contains("buffers hold 524288 of 1048576 bytes"), "{text}");
    driver.free(held);
    driver.allocate(MemoryKind::Device, 1 << 20, "").unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn more_than_available_memory_is_refused() {
    let mut info = info::info();
    info.memory = u64::MAX;
    let driver = CpuDriver::new(info, Machine::new(1));
    let more = info::available_memory().unwrap() + (4 << 30);
    let error = driver.allocate(MemoryKind::Device, more, "").unwrap_err().to_string();
    assert!(error.contains("and the system has "), "{error}");
}

#[test]
fn launches_are_timed_one_by_one() {
    let driver = driver();
    let a = driver.holding(&[1; 16]);
    let kernel = driver.kernel(&empty(1));
    let launch = || dispatch(kernel, &[span(a, 0, 16)], [4, 1, 1]);
    let steps = [launch(), fill(span(a, 0, 16), 0), launch(), launch()];
    let timed = driver.submit(Work::Once(&steps), true).unwrap();
    let untimed = driver.submit_once(&steps);
    driver.finish(untimed);
    assert_eq!(driver.timings(timed).unwrap().len(), 3);
    assert!(driver.timings(timed).unwrap().is_empty(), "asked for twice");
    assert!(driver.timings(untimed).unwrap().is_empty());
}

#[test]
fn zeroing_untouched_memory_is_skipped() {
    let driver = driver();
    let memory = driver.allocate(MemoryKind::Device, 64, "").unwrap();
    let is_untouched =
        || super::super::read(&driver.blocks).get(memory).is_some_and(|block| block.is_untouched());
    driver.finish(driver.submit_once(&[fill(span(memory, 0, 64), 0)]));
    assert!(is_untouched());
    let kernel = driver.kernel(&empty(1));
    driver.finish(driver.submit_once(&[dispatch(kernel, &[span(memory, 0, 64)], [1; 3])]));
    assert!(!is_untouched());
    driver.finish(driver.submit_once(&[fill(span(memory, 0, 32), 1)]));
    driver.finish(driver.submit_once(&[fill(span(memory, 16, 32), 0)]));
    let expected = [1u32.to_ne_bytes(); 4].concat();
    assert_eq!(driver.bytes(memory, 64), [expected, vec![0; 48]].concat());
}
