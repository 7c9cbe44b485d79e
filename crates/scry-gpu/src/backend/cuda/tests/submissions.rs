//! Tests of submissions: those that all GPU drivers run, and those of streams and graphs.

use super::*;

#[test]
fn dispatch_chains_run_in_order() {
    let Some(driver) = driver() else { return };
    bodies::dispatch_chains_run_in_order(&*driver);
}

#[test]
fn step_lists_run_once_in_order() {
    let Some(driver) = driver() else { return };
    bodies::step_lists_run_once_in_order(&*driver);
}

#[test]
fn each_launch_uses_its_own_bindings() {
    let Some(driver) = driver() else { return };
    bodies::each_launch_uses_its_own_bindings(&*driver);
}

#[test]
fn submission_indices_increase() {
    let Some(driver) = driver() else { return };
    bodies::submission_indices_increase(&*driver);
}

#[test]
fn empty_submissions_finish_in_order() {
    let Some(driver) = driver() else { return };
    bodies::empty_submissions_finish_in_order(&*driver);
}

#[test]
fn sequences_are_one_submission() {
    let Some(driver) = driver() else { return };
    bodies::sequences_are_one_submission(&*driver);
}

#[test]
fn replays_may_overlap() {
    let Some(driver) = driver() else { return };
    bodies::replays_may_overlap(&*driver);
}

#[test]
fn wait_ends_at_its_timeout() {
    let Some(driver) = driver() else { return };
    bodies::wait_ends_at_its_timeout(&*driver);
}

#[test]
fn each_dispatch_is_timed_once() {
    let Some(driver) = driver() else { return };
    bodies::each_dispatch_is_timed_once(&*driver);
}

#[test]
fn threads_share_a_driver() {
    let Some(driver) = driver() else { return };
    bodies::threads_share_a_driver(&*driver);
}

#[test]
fn dropping_a_busy_driver_waits() {
    let Some(driver) = driver() else { return };
    bodies::dropping_a_busy_driver_waits(driver.driver);
}

#[test]
fn abandoned_driver_rejects_work() {
    let Some(driver) = driver() else { return };
    bodies::abandoned_driver_rejects_work(driver.driver);
}

/// Number of parts of a buffer, each for one launch of a segment.
const PARTS: u64 = 24;

/// Words of a part.
const WORDS: u64 = 64;

/// A kernel whose results depend on every word that it reads.
const MIX: &str = "
    @group(0) @binding(0) var<storage, read> src: array<u32>;
    @group(0) @binding(1) var<storage, read_write> dst: array<u32>;
    @compute @workgroup_size(64)
    fn mix(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&dst) { dst[id.x] = src[id.x] * 31u + dst[id.x] + id.x; }
    }";

/// Returns a part of a range; the indices wrap around.
fn part(range: BufferRange, index: u64) -> BufferRange {
    let size = WORDS * 4;
    BufferRange { offset: range.offset + index % PARTS * size, size, ..range }
}

/// Returns segments of many small launches, each of which reads the output of another launch of the
/// previous segment.
fn mix_steps(driver: &dyn Driver, a: BufferRange, b: BufferRange, rounds: u64) -> Vec<Step> {
    let kernel = driver.compile_source(MIX, GridSource::Native);
    let round = |n: u64| {
        let (from, to) = if n.is_multiple_of(2) { (a, b) } else { (b, a) };
        let mix = move |i| {
            let bindings = [(part(from, i + n + 1), false), (part(to, i), true)];
            dispatch(kernel, &bindings, [1; 3])
        };
        (0..PARTS).map(mix).chain([full_barrier()])
    };
    (0..rounds).flat_map(round).collect()
}

/// Computes the results of [`mix_steps`] in both buffers.
fn mix_on_host(a: &mut Vec<u32>, b: &mut Vec<u32>, rounds: u64) {
    let index = |part: u64, word: u64| (part % PARTS * WORDS + word) as usize;
    for n in 0..rounds {
        let (from, to) = if n.is_multiple_of(2) { (&*a, &mut *b) } else { (&*b, &mut *a) };
        for (i, word) in (0..PARTS).flat_map(|i| (0..WORDS).map(move |word| (i, word))) {
            let old = &mut to[index(i, word)];
            let read = from[index(i + n + 1, word)];
            *old = read.wrapping_mul(31).wrapping_add(*old).wrapping_add(word as u32);
        }
    }
}

#[test]
fn distributed_launches_respect_barriers() {
    let Some(driver) = driver() else { return };
    let count = PARTS * WORDS;
    let (mut a, mut b): (Vec<u32>, Vec<u32>) =
        ((0..count as u32).collect(), (0..count as u32).map(|n| n * 7).collect());
    let (on_a, on_b) = (driver.upload(&a), driver.upload(&b));
    let (on_a, on_b) = (range(on_a, count * 4), range(on_b, count * 4));
    let steps = mix_steps(&*driver, on_a, on_b, 50);
    driver.run_steps(&steps);
    mix_on_host(&mut a, &mut b, 50);
    assert_eq!((driver.words(on_a), driver.words(on_b)), (a.clone(), b.clone()), "submitted");
    replay(&*driver, &steps, 3);
    (0..3).for_each(|_| mix_on_host(&mut a, &mut b, 50));
    assert_eq!((driver.words(on_a), driver.words(on_b)), (a, b), "replayed");
}

#[test]
fn partial_submission_completes_its_prefix() {
    let Some(driver) = driver() else { return };
    let data = driver.upload(&[0; 24 * 64]);
    let all = range(data, PARTS * WORDS * 4);
    let (kernel, stale) = (
        driver.compile_source(APPEND, GridSource::Native),
        driver.compile_source(MIX, GridSource::Native),
    );
    driver.free_kernel(stale);
    let append = |index| dispatch_with(kernel, &[(part(all, index), true)], [1; 3], &[0; 4]);
    let mut steps: Vec<Step> = (0..PARTS).map(append).collect();
    steps.insert(12, dispatch(stale, &[(all, false), (all, true)], [1; 3]));
    for round in 1..4 {
        let error = driver.submit(Work::Once(&steps), false).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
        assert!(driver.record(&steps).is_err());
        let words = driver.words(all);
        let expected = (0..round).fold(0, |x, _| x * 31 + 1);
        assert!(words[..12 * 64].iter().all(|word| *word == expected), "{words:?}");
        assert!(words[12 * 64..].iter().all(|word| *word == 0), "{words:?}");
    }
    // Later submissions still get new numbers, and finish.
    let [first, second] = [(); 2].map(|()| driver.submit(Work::Once(&steps[..12]), false).unwrap());
    assert!(first < second && driver.wait(second, LONG).unwrap());
}

#[test]
fn recorded_transfers_move_exactly_their_bytes() {
    let Some(driver) = driver() else { return };
    let from = driver.upload(&(0..100).collect::<Vec<u32>>());
    let to = driver.device_memory(400);
    let at = |offset, size| BufferRange { memory: to, offset, size };
    let steps = [
        run(Command::Fill { dst: at(0, 400), pattern: 7 }),
        full_barrier(),
        run(Command::Copy {
            src: BufferRange { memory: from, offset: 40, size: 80 },
            dst: at(8, 80),
        }),
        run(Command::Fill { dst: at(200, 8), pattern: 0xabcd_ef01 }),
        full_barrier(),
        run(Command::Copy { src: at(8, 7), dst: at(301, 7) }),
    ];
    let mut expected = vec![7u32; 100];
    expected[2..22].copy_from_slice(&(10..30).collect::<Vec<u32>>());
    expected[50..52].fill(0xabcd_ef01);
    let mut bytes: Vec<u8> = expected.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.copy_within(8..15, 301);
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let expected: Vec<u32> = words.collect();
    driver.run_steps(&steps);
    assert_eq!(driver.words(range(to, 400)), expected);
    driver.run_steps(&[run(Command::Fill { dst: range(to, 400), pattern: 0 })]);
    replay(&*driver, &steps, 2);
    assert_eq!(driver.words(range(to, 400)), expected);
}

#[test]
fn empty_recording_can_be_replayed() {
    let Some(driver) = driver() else { return };
    replay(&*driver, &[], 2);
    replay(&*driver, &[full_barrier(), compute_barrier()], 2);
}

#[test]
fn long_recording_replays_in_order() {
    let Some(driver) = driver() else { return };
    let data = range(driver.upload(&[0; 16]), 64);
    let kernel = driver.compile_source(APPEND, GridSource::Native);
    let step = |n: u32| dispatch_with(kernel, &[(data, true)], [1; 3], &n.to_le_bytes());
    let steps: Vec<Step> = (0..3000).flat_map(|n| [step(n), compute_barrier()]).collect();
    replay(&*driver, &steps, 2);
    let fold = |x, n: u32| u32::wrapping_mul(x, 31).wrapping_add(n + 1);
    assert_eq!(driver.words(data), [(0..6000).map(|n| n % 3000).fold(0, fold); 16]);
}

#[test]
fn timed_submission_times_each_launch() {
    // Exclusive, because launches may be delayed while the driver loads code for other tests.
    let Some(driver) = open(Access::exclusive()) else { return };
    let data = range(driver.upload(&[0; 16]), 64);
    let kernel = driver.compile_source(APPEND, GridSource::Native);
    let step = dispatch_with(kernel, &[(data, true)], [1; 3], &[0; 4]);
    let fill = run(Command::Fill { dst: data, pattern: 0 });
    let steps = [fill.clone(), step.clone(), step.clone(), compute_barrier(), step, fill];
    for _ in 0..3 {
        let submission = driver.submit(Work::Once(&steps), true).unwrap();
        assert!(driver.wait(submission, LONG).unwrap());
        let times = driver.timings(submission).unwrap();
        assert_eq!(times.len(), 3);
        let plausible = Duration::from_nanos(100)..Duration::from_millis(100);
        assert!(times.iter().all(|time| plausible.contains(time)), "{times:?}");
    }
}
