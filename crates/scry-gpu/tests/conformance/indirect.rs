//! Indirect launches: workgroup counts from a buffer with any writer, at any time.

use std::time::Duration;

use scry_conformance::find;
use scry_gpu::{BackendKind, Buffer, DType, Device, GpuError, Kernel, Launch};

use crate::harness::{assert_says, on_each_device, refused, succeed};

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

/// A device with [`COUNT`], [`GROW`] and what the first of the two counts in.
struct Counter {
    gpu: Device,
    count: Kernel,
    grow: Kernel,
    runs: Buffer<u32>,
}

impl Counter {
    fn on(gpu: &Device) -> Self {
        Self {
            gpu: gpu.clone(),
            count: succeed(gpu.compile(COUNT)),
            grow: succeed(gpu.compile(GROW)),
            runs: succeed(gpu.alloc(1)),
        }
    }

    fn run(&self, counts: &Buffer<u32>) {
        let launch = Launch::indirect(counts);
        succeed(self.gpu.run(&self.count, &[&self.runs], launch));
    }

    /// Returns the workgroups that ran since the last call.
    fn workgroups(&self) -> u32 {
        let [runs] = succeed(self.runs.download())[..] else { panic!("one word") };
        succeed(self.runs.write(&[0]));
        assert_eq!(runs % 4, 0, "whole workgroups of 4");
        runs / 4
    }
}

#[test]
fn launches_see_counts_in_batch_order() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let Counter { count, grow, runs, .. } = &counter;
        let counts = upload(gpu, [0, 0, 0]);
        let mut batch = gpu.batch();
        // 0, then 1 + 8, then 0 again, and a last change after the launch.
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        for _ in 0..2 {
            succeed(batch.run(grow, &[&counts], 3));
            succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        }
        succeed(batch.fill(&counts, 0));
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        succeed(batch.write(&counts, &[7, 7, 7]));
        succeed(batch.submit());
        assert_eq!(counter.workgroups(), 9);
        assert_eq!(succeed(counts.download()), [7, 7, 7]);
    });
}

#[test]
fn launches_see_counts_of_earlier_submissions() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let counts = succeed(gpu.alloc::<u32>(3));
        counter.run(&counts);
        for expected in [1, 8, 27] {
            succeed(gpu.run(&counter.grow, &[&counts], 3));
            counter.run(&counts);
            // After the launch.
            let later = succeed(gpu.upload(&[expected; 3]));
            succeed(later.copy_to(&counts));
            succeed(gpu.run(&counter.grow, &[&counts], 3));
            let [x, ..] = succeed(counts.download())[..] else { panic!("three words") };
            assert_eq!(x, expected + 1);
            let root = (1..).find(|n| n * n * n == expected).unwrap_or_default();
            succeed(counts.write(&[root; 3]));
            assert_eq!(counter.workgroups(), expected);
        }
    });
}

#[test]
fn replays_see_changed_counts() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let Counter { count, grow, runs, .. } = &counter;
        let counts = upload(gpu, [0, 0, 0]);
        let mut batch = gpu.batch();
        succeed(batch.run(grow, &[&counts], 3));
        succeed(batch.run(count, &[runs], Launch::indirect(&counts)));
        let recording = succeed(batch.record());
        for _ in 0..3 {
            let _running = succeed(recording.replay());
        }
        assert_eq!(counter.workgroups(), 1 + 8 + 27);
        // Written by the host, growing and shrinking.
        for (counts_now, expected) in [([9, 0, 1], 20), ([u32::MAX, 0, 0], 0), ([4, 3, 0], 20)] {
            succeed(counts.write(&counts_now));
            succeed(succeed(recording.replay()).wait());
            assert_eq!(counter.workgroups(), expected, "{counts_now:?}");
        }
    });
}

/// Each increments its own cell: all of them may overlap.
#[test]
fn unordered_indirect_launches_all_run() {
    on_each_device(|gpu| {
        let count = succeed(gpu.compile(COUNT));
        let runs = [(); 40].map(|()| succeed(gpu.alloc::<u32>(1)));
        let counts = [(); 40].map(|()| succeed(gpu.alloc::<u32>(3)));
        let mut batch = gpu.batch();
        for (nth, (counts, runs)) in (1..).zip(counts.iter().zip(&runs)) {
            succeed(batch.write(counts, &[nth, 1, 2]));
            succeed(batch.run(&count, &[runs], Launch::indirect(counts)));
        }
        let recording = succeed(batch.record());
        let mut second = gpu.batch();
        for (counts, runs) in counts.iter().zip(&runs) {
            succeed(second.run(&count, &[runs], Launch::indirect(counts)));
        }
        let _running = succeed(recording.replay());
        succeed(second.submit());
        for (nth, runs) in (1..).zip(&runs) {
            assert_eq!(succeed(runs.download()), [2 * nth * 2 * 4]);
        }
    });
}

/// As in a single-pass scan: workgroups start in the order of their indices.
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
    // WGSL does not guarantee it, and lavapipe aborts long loops.
    for info in Device::list() {
        if matches!(info.backend, BackendKind::Cpu | BackendKind::Cuda) {
            let gpu = succeed(Device::open(&format!("{}:{}", info.backend, info.index)));
            gpu.set_time_limit(Some(Duration::from_secs(60)));
            let kernel = succeed(gpu.compile(source));
            for groups in [1u32, 100, 3000] {
                let done = succeed(gpu.alloc::<u32>(groups as usize));
                let launch = Launch::indirect(&upload(&gpu, [groups, 1, 1]));
                succeed(gpu.run(&kernel, &[&done], launch));
                let want: Vec<u32> = (1..=groups).collect();
                assert!(succeed(done.download()) == want, "{groups} workgroups");
            }
        }
    }
}

#[test]
fn counts_accept_other_element_types() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let count = |launch| succeed(gpu.run(&counter.count, &[&counter.runs], launch));
        let triples = succeed(gpu.upload(&[[9u32; 3], [2, 3, 1]]));
        count(Launch::indirect(&succeed(triples.slice(1..2))));
        assert_eq!(counter.workgroups(), 6, "elements of three words");
        let words: Vec<u8> = [9, 4, 1, 3].iter().flat_map(|n: &u32| n.to_ne_bytes()).collect();
        let untyped = succeed(gpu.upload_bytes(None, &words));
        count(Launch::indirect(&succeed(untyped.slice(4..))));
        assert_eq!(counter.workgroups(), 12, "bytes without a type");
        let typed = succeed(gpu.upload_bytes(DType::U32, &words));
        count(Launch::indirect(&succeed(typed.slice(1..))));
        assert_eq!(counter.workgroups(), 12, "a type known at run time");
        let floats = succeed(typed.view_as(DType::F32));
        let launch = Launch::indirect(&floats);
        let refusal = refused(gpu.run(&counter.count, &[&counter.runs], launch));
        assert_says(&refusal, &["counts of Launch::indirect", "its element type is f32"]);
    });
}

#[test]
fn dropped_counts_keep_launch_reusable() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let launch = Launch::indirect(&upload(gpu, [2, 3, 1]));
        for _ in 0..20 {
            // Would reuse the memory if it had been freed.
            let other = succeed(gpu.upload(&[u32::MAX; 3]));
            let counting = &counter.count;
            succeed(gpu.run(counting, &[&counter.runs], launch.clone()));
            drop(other);
        }
        drop(launch);
        assert_eq!(counter.workgroups(), 120);
    });
}

#[test]
fn indirect_launches_are_timed_once() {
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        let counts = upload(gpu, [2, 3, 1]);
        let mut batch = gpu.batch();
        succeed(batch.run(&counter.count, &[&counter.runs], 4));
        let launch = Launch::indirect(&counts);
        succeed(batch.run(&counter.count, &[&counter.runs], launch));
        let times = succeed(batch.submit_timed());
        assert!([0, 2].contains(&times.len()), "{times:?}");
        assert_eq!(counter.workgroups(), 7);
    });
}

/// The maximal number of workgroups runs for long: the time limit ends them, on backends that
/// support cancellation.
#[test]
fn time_limit_ends_maximal_indirect_launch() {
    for info in Device::list() {
        if matches!(info.backend, BackendKind::Cpu | BackendKind::Cuda) {
            let gpu = succeed(Device::open(&format!("{}:{}", info.backend, info.index)));
            time_limit_ends_workgroups(&gpu);
        }
    }
}

fn time_limit_ends_workgroups(gpu: &Device) {
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
        let ended = gpu.wait();
        assert!(matches!(ended, Err(GpuError::Timeout(_))), "axis {axis}: {ended:?}");
        gpu.set_time_limit(None);
        // The device stays usable.
        let counter = Counter::on(gpu);
        counter.run(&upload(gpu, [2, 1, 1]));
        assert_eq!(counter.workgroups(), 2);
    }
}
