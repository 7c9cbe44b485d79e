//! Tests of indirect launches: the workgroup counts are those in the buffer when the launch starts,
//! whatever wrote them.

use std::time::Duration;

use scry_conformance::find;
use scry_gpu::{BackendKind, Buffer, DType, Device, GpuError, Kernel, Launch};
use scry_test_support::{on_each_device, succeed};

use crate::harness::{assert_contains, expect_error};

/// Counts the invocations that run.
const COUNT: &str = "
    @group(0) @binding(0) var<storage, read_write> runs: atomic<u32>;
    @compute @workgroup_size(4)
    fn count() { atomicAdd(&runs, 1u); }";

/// Increments each of three counts.
const GROW: &str = "
    @group(0) @binding(0) var<storage, read_write> counts: array<u32>;
    @compute @workgroup_size(3)
    fn grow(@builtin(local_invocation_index) axis: u32) { counts[axis] += 1u; }";

fn upload(gpu: &Device, counts: [u32; 3]) -> Buffer<u32> {
    succeed(gpu.upload(&counts))
}

/// A device with the kernels [`COUNT`] and [`GROW`], and the buffer `runs` of `COUNT`.
struct Counter {
    gpu: Device,
    count: Kernel,
    grow: Kernel,
    runs: Buffer<u32>,
}

impl Counter {
    fn new(gpu: &Device) -> Self {
        Self {
            gpu: gpu.clone(),
            count: succeed(gpu.compile(COUNT)),
            grow: succeed(gpu.compile(GROW)),
            runs: succeed(gpu.alloc(1)),
        }
    }

    /// Launches [`COUNT`] with these workgroup counts.
    fn run(&self, counts: &Buffer<u32>) {
        let launch = Launch::indirect(counts);
        succeed(self.gpu.run(&self.count, &[&self.runs], launch));
    }

    /// Returns the number of workgroups that ran since the last call.
    fn take_workgroups(&self) -> u32 {
        let [runs] = succeed(self.runs.download())[..] else { panic!("one word") };
        succeed(self.runs.write(&[0]));
        assert_eq!(runs % 4, 0, "whole workgroups of 4");
        runs / 4
    }
}

#[test]
fn counts_follow_batch_order() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let Counter { count, grow, runs, .. } = &counter;
        let counts = upload(gpu, [0, 0, 0]);
        let mut batch = gpu.batch();
        // The launches have 0, 1, 8 and 0 workgroups. The last write follows all of them.
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        for _ in 0..2 {
            succeed(batch.run(grow, &[&counts], 3));
            succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        }
        succeed(batch.fill(&counts, 0));
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        succeed(batch.write(&counts, &[7, 7, 7]));
        succeed(batch.submit());
        assert_eq!(counter.take_workgroups(), 9);
        assert_eq!(succeed(counts.download()), [7, 7, 7]);
    });
}

#[test]
fn counts_follow_submission_order() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let counts = succeed(gpu.alloc::<u32>(3));
        counter.run(&counts);
        for expected in [1, 8, 27] {
            succeed(gpu.run(&counter.grow, &[&counts], 3));
            counter.run(&counts);
            // Writes after the launch do not affect it.
            let later = succeed(gpu.upload(&[expected; 3]));
            succeed(later.copy_to(&counts));
            succeed(gpu.run(&counter.grow, &[&counts], 3));
            let [x, ..] = succeed(counts.download())[..] else { panic!("three words") };
            assert_eq!(x, expected + 1);
            // Restores the counts of the launch, so that the next round increments them.
            let cube_root = (1..).find(|n| n * n * n == expected).unwrap_or_default();
            succeed(counts.write(&[cube_root; 3]));
            assert_eq!(counter.take_workgroups(), expected);
        }
    });
}

#[test]
fn replays_use_changed_counts() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let Counter { count, grow, runs, .. } = &counter;
        let counts = upload(gpu, [0, 0, 0]);
        let mut batch = gpu.batch();
        succeed(batch.run(grow, &[&counts], 3));
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        let recording = succeed(batch.record());
        for _ in 0..3 {
            let _running = succeed(recording.replay());
        }
        assert_eq!(counter.take_workgroups(), 1 + 8 + 27);
        // Each replay increments the counts that the host wrote.
        for (written, expected) in [([9, 0, 1], 20), ([u32::MAX, 0, 0], 0), ([4, 3, 0], 20)] {
            succeed(counts.write(&written));
            succeed(succeed(recording.replay()).wait());
            assert_eq!(counter.take_workgroups(), expected, "{written:?}");
        }
    });
}

/// Each launch has its own counts and output, so all of them may overlap.
#[test]
fn unordered_indirect_launches_all_run() {
    on_each_device(|gpu| {
        let count = succeed(gpu.compile(COUNT));
        let runs = [(); 40].map(|()| succeed(gpu.alloc::<u32>(1)));
        let counts = [(); 40].map(|()| succeed(gpu.alloc::<u32>(3)));
        let mut batch = gpu.batch();
        for (i, (counts, runs)) in (1..).zip(counts.iter().zip(&runs)) {
            succeed(batch.write(counts, &[i, 1, 2]));
            succeed(batch.run(&count, &[runs], Launch::indirect(counts)));
        }
        let recording = succeed(batch.record());
        let mut second = gpu.batch();
        for (counts, runs) in counts.iter().zip(&runs) {
            succeed(second.run(&count, &[runs], Launch::indirect(counts)));
        }
        let _running = succeed(recording.replay());
        succeed(second.submit());
        for (i, runs) in (1..).zip(&runs) {
            assert_eq!(succeed(runs.download()), [2 * i * 2 * 4]);
        }
    });
}

/// Workgroups start in the order of their indices, as a single-pass scan needs.
#[test]
fn workgroups_may_wait_for_predecessors() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> done: array<atomic<u32>>;
        @compute @workgroup_size(32)
        fn main(
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(local_invocation_index) local: u32,
        ) {
            if local > 0u { return; }
            let nth = group.x;
            var before = 0u;
            if nth > 0u {
                loop {
                    before = atomicLoad(&done[nth - 1u]);
                    if before != 0u { break; }
                }
            }
            atomicStore(&done[nth], before + 1u);
        }";
    // Only on backends that guarantee it: WGSL does not, and lavapipe aborts long loops.
    for info in Device::list() {
        if matches!(info.backend, BackendKind::Cpu | BackendKind::Cuda) {
            let gpu = succeed(Device::open(&format!("{}:{}", info.backend, info.index)));
            gpu.set_time_limit(Some(Duration::from_secs(60)));
            let kernel = succeed(gpu.compile(source));
            for groups in [1u32, 100, 3000] {
                let done = succeed(gpu.alloc::<u32>(groups as usize));
                let launch = Launch::indirect(&upload(&gpu, [groups, 1, 1]));
                succeed(gpu.run(&kernel, &[&done], launch));
                let expected: Vec<u32> = (1..=groups).collect();
                assert!(succeed(done.download()) == expected, "{groups} workgroups");
            }
        }
    }
}

#[test]
fn counts_accept_other_element_types() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let count = |launch| succeed(gpu.run(&counter.count, &[&counter.runs], launch));
        let triples = succeed(gpu.upload(&[[9u32; 3], [2, 3, 1]]));
        count(Launch::indirect(&succeed(triples.slice(1..2))));
        assert_eq!(counter.take_workgroups(), 6, "elements of three u32");
        let words: Vec<u8> = [9, 4, 1, 3].iter().flat_map(|n: &u32| n.to_ne_bytes()).collect();
        let untyped = succeed(gpu.upload_bytes(None, &words));
        count(Launch::indirect(&succeed(untyped.slice(4..))));
        assert_eq!(counter.take_workgroups(), 12, "untyped buffer without an element type");
        let typed = succeed(gpu.upload_bytes(DType::U32, &words));
        count(Launch::indirect(&succeed(typed.slice(1..))));
        assert_eq!(counter.take_workgroups(), 12, "untyped buffer of u32");
        let floats = succeed(typed.view_as(DType::F32));
        let launch = Launch::indirect(&floats);
        let error = expect_error(gpu.run(&counter.count, &[&counter.runs], launch));
        assert_contains(&error, &["counts of Launch::indirect", "its element type is f32"]);
    });
}

#[test]
fn dropped_counts_keep_launch_reusable() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let launch = Launch::indirect(&upload(gpu, [2, 3, 1]));
        for _ in 0..20 {
            // This buffer would reuse the memory of the counts if it had been freed.
            let other = succeed(gpu.upload(&[u32::MAX; 3]));
            let count = &counter.count;
            succeed(gpu.run(count, &[&counter.runs], launch.clone()));
            drop(other);
        }
        drop(launch);
        assert_eq!(counter.take_workgroups(), 120);
    });
}

#[test]
fn indirect_launches_are_timed_once() {
    on_each_device(|gpu| {
        let counter = Counter::new(gpu);
        let counts = upload(gpu, [2, 3, 1]);
        let mut batch = gpu.batch();
        succeed(batch.run(&counter.count, &[&counter.runs], 4));
        let launch = Launch::indirect(&counts);
        succeed(batch.run(&counter.count, &[&counter.runs], launch));
        let times = succeed(batch.submit_timed());
        // There are no times on devices without timestamps.
        assert!([0, 2].contains(&times.len()), "{times:?}");
        assert_eq!(counter.take_workgroups(), 7);
    });
}

/// The maximum number of workgroups runs for long: the time limit must end the launch, on backends
/// that skip the remaining workgroups.
#[test]
fn time_limit_ends_maximal_indirect_launch() {
    for info in Device::list() {
        if matches!(info.backend, BackendKind::Cpu | BackendKind::Cuda) {
            let gpu = succeed(Device::open(&format!("{}:{}", info.backend, info.index)));
            check_time_limit(&gpu);
        }
    }
}

fn check_time_limit(gpu: &Device) {
    // The kernel counts every invocation.
    let test = find("launches", "each_invocation_exactly_once").expect("a test of the list");
    let case = (test.cases)(gpu.info()).next().expect("a case of workgroups of one invocation");
    let kernel = succeed(gpu.compile(&case.source));
    let bound = succeed(gpu.upload(&[0u32; 4]));
    let (found, wrong) = (succeed(gpu.alloc::<u32>(1)), succeed(gpu.alloc::<u32>(1)));
    for axis in 0..3 {
        let mut counts = [1; 3];
        counts[axis] = u32::MAX;
        let launch = Launch::indirect(&upload(gpu, counts));
        gpu.set_time_limit(Some(Duration::from_millis(100)));
        succeed(gpu.run(&kernel, &[&bound, &found, &wrong], launch));
        let result = gpu.wait();
        assert!(matches!(result, Err(GpuError::Timeout(_))), "axis {axis}: {result:?}");
        gpu.set_time_limit(None);
        // The device stays usable.
        let counter = Counter::new(gpu);
        counter.run(&upload(gpu, [2, 1, 1]));
        assert_eq!(counter.take_workgroups(), 2);
    }
}
