//! Tests of submissions that all GPU drivers run: order, waits, replays, timings, threads, and the
//! drop of the device. Each function tests one driver.

use std::time::Instant;

use super::*;
use crate::api::error::GpuError;
use crate::api::info::DeviceKind;
use crate::core::report;

/// A kernel that adds one to each word.
pub(in crate::backend) const INCREMENT: &str = "
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64)
    fn increment(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&data) { data[id.x] += 1u; }
    }";

/// A kernel whose results depend on the order of its launches.
pub(in crate::backend) const APPEND: &str = "
    var<immediate> number: u32;
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(64)
    fn append(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&data) { data[id.x] = data[id.x] * 31u + number + 1u; }
    }";

/// A kernel that keeps a device busy for a while, with a loop that compilers cannot shorten.
const SLOW: &str = "
    var<immediate> iterations: u32;
    @group(0) @binding(0) var<storage, read_write> data: array<u32>;
    @compute @workgroup_size(1)
    fn slow() {
        var x = data[0];
        for (var i = 0u; i < iterations; i++) { x = x * 1664525u + 1013904223u; x ^= x >> 7u; }
        data[0] = x;
    }";

pub(in crate::backend) fn dispatch_chains_run_in_order(driver: &dyn Driver) {
    let data = driver.upload(&[0; 256]);
    let kernel = driver.compile_source(INCREMENT, GridSource::Native);
    let step = dispatch(kernel, &[(range(data, 1024), true)], [4, 1, 1]);
    let chain: Vec<Step> = (0..100).flat_map(|_| [compute_barrier(), step.clone()]).collect();
    driver.run_steps(&chain);
    assert_eq!(driver.words(range(data, 1024)), [100; 256]);
}

/// The lengths are around those of the chunks that the Vulkan driver submits, and of several
/// chunks.
pub(in crate::backend) fn step_lists_run_once_in_order(driver: &dyn Driver) {
    let data = range(driver.upload(&[0; 16]), 64);
    let kernel = driver.compile_source(APPEND, GridSource::Native);
    for len in [1u32, 63, 64, 65, 127, 128, 129, 383, 384, 385, 895, 896, 897, 3000] {
        driver.run_steps(&[run(Command::Fill { dst: data, pattern: 0 }), full_barrier()]);
        let steps: Vec<Step> = (0..len)
            .flat_map(|i| {
                let step = dispatch_with(kernel, &[(data, true)], [1; 3], &i.to_le_bytes());
                [step, compute_barrier()]
            })
            .take(len as usize)
            .collect();
        driver.run_steps(&steps);
        let launches = len.div_ceil(2);
        let expected = (0..launches).fold(0u32, |x, i| x.wrapping_mul(31).wrapping_add(i + 1));
        assert_eq!(driver.words(data), [expected; 16], "{len} steps");
    }
}

pub(in crate::backend) fn each_launch_uses_its_own_bindings(driver: &dyn Driver) {
    let (a, b) = (driver.upload(&[1; 64]), driver.upload(&[0; 64]));
    let (a, b) = (range(a, 256), range(b, 256));
    let double = driver.compile_source(DOUBLE, GridSource::Native);
    let increment = driver.compile_source(INCREMENT, GridSource::Native);
    let double = |from, to| dispatch(double, &[(from, false), (to, true)], [1; 3]);
    let increment = |data| dispatch(increment, &[(data, true)], [1; 3]);
    let steps = [
        double(a, b),
        copy(b, a),
        double(a, b),
        double(b, a),
        increment(a),
        double(b, a),
        increment(a),
        increment(a),
        double(a, b),
    ];
    let ordered: Vec<Step> = steps.into_iter().flat_map(|step| [step, full_barrier()]).collect();
    driver.run_steps(&ordered);
    assert_eq!(driver.words(a), [10; 64]);
    assert_eq!(driver.words(b), [20; 64]);
}

pub(in crate::backend) fn submission_indices_increase(driver: &dyn Driver) {
    let data = driver.upload(&[0; 4]);
    let kernel = driver.compile_source(INCREMENT, GridSource::Native);
    let steps = [compute_barrier(), dispatch(kernel, &[(range(data, 16), true)], [1, 1, 1])];
    let mut last = SubmissionIndex(0);
    for _ in 0..200 {
        let submission = driver.submit(Work::Once(&steps), false).unwrap();
        assert!(submission > last);
        last = submission;
        if submission.0 % 8 == 0 {
            assert!(driver.wait(submission, LONG).unwrap());
        }
    }
    assert!(driver.wait(last, LONG).unwrap());
    assert!(driver.wait(SubmissionIndex(1), Duration::ZERO).unwrap());
    assert_eq!(driver.words(range(data, 16)), [200; 4]);
}

pub(in crate::backend) fn empty_submissions_finish_in_order(driver: &dyn Driver) {
    let first = driver.submit(Work::Once(&[]), false).unwrap();
    let second = driver.submit(Work::Once(&[]), true).unwrap();
    assert!(second > first);
    assert!(driver.wait(second, LONG).unwrap());
    assert_eq!(driver.timings(second).unwrap(), []);
}

pub(in crate::backend) fn replays_may_overlap(driver: &dyn Driver) {
    let data = driver.upload(&[0; 64]);
    let kernel = driver.compile_source(INCREMENT, GridSource::Native);
    let steps = [compute_barrier(), dispatch(kernel, &[(range(data, 256), true)], [1, 1, 1])];
    let recording = driver.record(&steps).unwrap();
    for _ in 0..50 {
        driver.submit(Work::Replay(recording), false).unwrap();
    }
    assert_eq!(driver.words(range(data, 256)), [50; 64]);
    driver.free_recording(recording);
    let error = driver.submit(Work::Replay(recording), false).unwrap_err();
    assert!(matches!(error, GpuError::Driver(_)), "{error}");
}

pub(in crate::backend) fn sequences_are_one_submission(driver: &dyn Driver) {
    let (data, copied) = (driver.upload(&[0; 64]), driver.device_memory(256));
    let (data, copied) = (range(data, 256), range(copied, 256));
    let kernel = driver.compile_source(INCREMENT, GridSource::Native);
    let increment = [full_barrier(), dispatch(kernel, &[(data, true)], [1, 1, 1])];
    let recording = driver.record(&[&increment[..], &increment[..]].concat()).unwrap();
    let (start, end) =
        ([run(Command::Fill { dst: data, pattern: 5 })], [full_barrier(), copy(data, copied)]);
    let (once, replay) = (Work::Once(&increment), Work::Replay(recording));
    let works = [Work::Once(&start), once, replay, once, replay, replay, Work::Once(&end)];
    let before = driver.submit(once, false).unwrap();
    let submission = driver.submit(Work::Sequence(&works), false).unwrap();
    let after = driver.submit(once, false).unwrap();
    assert!(driver.wait(after, LONG).unwrap());
    assert!(driver.wait(submission, Duration::ZERO).unwrap());
    assert_eq!((submission.0, after.0), (before.0 + 1, before.0 + 2));
    assert_eq!(driver.words(copied), [5 + 1 + 2 + 1 + 4; 64]);
    assert_eq!(driver.words(data), [5 + 1 + 2 + 1 + 4 + 1; 64]);
    driver.free_recording(recording);
    let error = driver.submit(Work::Sequence(&works), false).unwrap_err();
    assert!(matches!(error, GpuError::Driver(_)), "{error}");
    driver.run_steps(&increment);
}

/// Submits a launch that takes much longer than a few milliseconds.
pub(in crate::backend) fn submit_slow(driver: &dyn Driver, timed: bool) -> SubmissionIndex {
    driver.submit(Work::Once(&[slow_launch(driver)]), timed).unwrap()
}

/// Returns a launch that takes much longer than a few milliseconds.
fn slow_launch(driver: &dyn Driver) -> Step {
    let data = driver.upload(&[1]);
    let kernel = driver.compile_source(SLOW, GridSource::Native);
    let (iterations, groups) = match driver.info().kind {
        // Mesa's software driver ends all loops of an invocation after 65535 iterations in total.
        DeviceKind::Software => (60_000u32, 1000),
        _ => (40_000_000, 1),
    };
    let mut bindings = vec![(range(data, 4), true)];
    if driver.report(kernel).is_some() {
        let words = driver.device_memory(report::REPORT_BYTES);
        bindings.push((range(words, report::REPORT_BYTES), true));
    }
    dispatch_with(kernel, &bindings, [groups, 1, 1], &iterations.to_le_bytes())
}

pub(in crate::backend) fn wait_ends_at_its_timeout(driver: &dyn Driver) {
    // On a busy machine the work may finish before the wait starts: then it is submitted again.
    let unfinished = (0..10).find_map(|_| {
        let submission = submit_slow(driver, false);
        let start = Instant::now();
        let reached = driver.wait(submission, Duration::from_millis(2)).unwrap();
        (!reached).then(|| (submission, start.elapsed()))
    });
    let (submission, waited) = unfinished.expect("one wait of ten times out");
    assert!(waited >= Duration::from_millis(2), "{waited:?}");
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(driver.wait(submission, LONG).unwrap());
    assert!(driver.wait(submission, Duration::ZERO).unwrap());
}

pub(in crate::backend) fn each_dispatch_is_timed_once(driver: &dyn Driver) {
    let start = Instant::now();
    let submission = submit_slow(driver, true);
    assert!(driver.wait(submission, LONG).unwrap());
    let wall = start.elapsed();
    let times = driver.timings(submission).unwrap();
    assert_eq!(times.len(), 1);
    assert!(times[0] > Duration::from_millis(1), "{times:?} of {wall:?}");
    assert!(times[0] <= wall, "{times:?} of {wall:?}");
    assert!(driver.timings(submission).is_err(), "times are returned once");
}

pub(in crate::backend) fn threads_share_a_driver(driver: &dyn Driver) {
    std::thread::scope(|scope| {
        for thread in 1..=8 {
            scope.spawn(move || double_repeatedly(driver, thread));
        }
    });
}

fn double_repeatedly(driver: &dyn Driver, thread: u32) {
    let kernel = driver.compile_source(DOUBLE, GridSource::Native);
    for round in 0..20 {
        let words = vec![thread * 1000 + round; 100];
        let src = driver.upload(&words);
        let dst = driver.device_memory(400);
        let bindings = [(range(src, 400), false), (range(dst, 400), true)];
        driver.run_steps(&[dispatch(kernel, &bindings, [2, 1, 1])]);
        assert_eq!(driver.words(range(dst, 400)), vec![2 * words[0]; 100]);
        driver.free(src);
        driver.free(dst);
    }
}

pub(in crate::backend) fn dropping_a_busy_driver_waits(driver: Box<dyn Driver>) {
    let launch = slow_launch(&*driver);
    let start = Instant::now();
    driver.submit(Work::Once(&[launch]), false).unwrap();
    drop(driver);
    let elapsed = start.elapsed();
    assert!(elapsed > Duration::from_millis(1), "{elapsed:?}");
}

pub(in crate::backend) fn abandoned_driver_rejects_work(driver: Box<dyn Driver>) {
    let submission = submit_slow(&*driver, false);
    driver.abandon();
    let start = Instant::now();
    for error in [
        driver.wait(submission, LONG).unwrap_err(),
        driver.submit(Work::Once(&[]), false).unwrap_err(),
        driver.allocate(MemoryKind::Device, 4, "").unwrap_err(),
    ] {
        assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
    }
    drop(driver);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A dispatch whose bindings, immediates or kernel do not match is a driver error, after which the
/// device stays usable.
pub(in crate::backend) fn dispatch_must_match_its_kernel(driver: &dyn Driver) {
    let kernel = driver.compile_source(DOUBLE, GridSource::Native);
    let memory = driver.device_memory(64);
    let (whole, beyond) = ((range(memory, 64), true), (range(memory, 65), true));
    let stale = driver.compile_source(DOUBLE, GridSource::Native);
    driver.free_kernel(stale);
    let invalid = [
        dispatch(kernel, &[whole], [1, 1, 1]),
        dispatch(kernel, &[whole, beyond], [1, 1, 1]),
        dispatch(stale, &[whole, whole], [1, 1, 1]),
        dispatch_with(kernel, &[whole, whole], [1, 1, 1], &[0; 4]),
    ];
    for step in invalid {
        let error = driver.submit(Work::Once(&[step]), false).unwrap_err();
        assert!(matches!(error, GpuError::Driver(_)), "{error}");
    }
    let words = driver.upload(&[4; 16]);
    let valid = [(range(words, 64), false), whole];
    driver.run_steps(&[dispatch(kernel, &valid, [1; 3])]);
    assert_eq!(driver.words(range(memory, 64)), [8; 16], "the device stays usable");
}
