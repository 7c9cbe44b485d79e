//! Indirect launches: workgroup counts from a buffer with any writer, at any time, with any value.

use std::time::Duration;

use scry_gpu::{BackendKind, Buffer, DType, Device, GpuError, Kernel, Launch};

use crate::harness::{assert_says, on_each_device, refused, succeed};
use crate::launches::{check_launch, counting};

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
fn every_invocation_runs_exactly_once() {
    let cases: [([u32; 3], [u32; 3]); 9] = [
        ([1, 1, 1], [1, 1, 1]),
        ([4, 2, 1], [1, 1, 1]),
        ([8, 4, 2], [40, 12, 6]),
        ([64, 1, 1], [64 * 300, 2, 3]),
        // Beyond the maximum of a device's launch along an axis.
        ([1, 1, 1], [70_000, 1, 1]),
        ([1, 1, 1], [1, 70_000, 1]),
        ([1, 1, 1], [1, 1, 70_000]),
        ([2, 1, 1], [131_076, 3, 1]),
        ([1, 2, 2], [2, 131_074, 4]),
    ];
    on_each_device(|gpu| {
        for (workgroup, size) in cases {
            let groups = [0, 1, 2].map(|axis| size[axis].div_ceil(workgroup[axis]));
            let counts = upload(gpu, groups);
            check_launch(gpu, workgroup, size, Launch::indirect(&counts));
        }
    });
}

#[test]
fn invalid_counts_run_nothing() {
    const MAX: u32 = u32::MAX;
    let cases = [
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
        [0; 3],
        [0, MAX, MAX],
        [MAX, MAX, 0],
        // Four invocations each: more than an axis can have.
        [1 << 30, 1, 1],
        [MAX, 1, 1],
        [MAX, MAX, MAX],
        // More workgroups in total than u32 can number.
        [1, MAX, 2],
        [1, 2, MAX],
        [65536, 65536, 1],
        [1, 65536, 65536],
        [65536, 1, 65536],
        [1 << 11, 1 << 11, 1 << 10],
    ];
    on_each_device(|gpu| {
        let counter = Counter::on(gpu);
        for counts in cases {
            counter.run(&upload(gpu, counts));
            assert_eq!(counter.workgroups(), 0, "{counts:?}");
        }
        counter.run(&upload(gpu, [5, 2, 3]));
        assert_eq!(counter.workgroups(), 30);
    });
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

/// Workgroup memory is not visible to the next workgroup on the same multiprocessor; and an early
/// return ends an invocation of its own workgroup only.
#[test]
fn workgroup_memory_with_early_returns() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> sums: array<u32>;
        @group(0) @binding(1) var<storage, read_write> runs: atomic<u32>;
        var<workgroup> words: array<atomic<u32>, 2>;
        var<workgroup> row: array<u32, 300>;
        var<private> calls: u32;

        fn count(id: vec3<u32>) { calls++; atomicAdd(&words[id.x % 2u], id.x / 2u); }

        @compute @workgroup_size(2)
        fn main(
            @builtin(global_invocation_id) id: vec3<u32>,
            @builtin(local_invocation_index) local: u32,
            @builtin(workgroup_id) group: vec3<u32>,
            @builtin(num_workgroups) groups: vec3<u32>,
        ) {
            if group.x % 5u == 3u { return; }
            count(id);
            row[local * 100u + group.x % 100u] += 1u;
            atomicAdd(&runs, calls);
            workgroupBarrier();
            if local == 1u { return; }
            var cells = 0u;
            for (var i = 0u; i < 300u; i++) { cells += row[i]; }
            let sum = atomicLoad(&words[0]) + atomicLoad(&words[1]);
            sums[group.x] = sum * 2u + cells + groups.x;
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        for groups in [1u32, 5, 700, 66_000] {
            let sums = succeed(gpu.alloc::<u32>(groups as usize));
            let runs = succeed(gpu.alloc::<u32>(1));
            let counts = upload(gpu, [groups, 1, 1]);
            let launch = Launch::indirect(&counts);
            succeed(gpu.run(&kernel, &[&sums, &runs], launch));
            let returns = |group: u32| group % 5 == 3;
            let sum = |group: u32| if returns(group) { 0 } else { 4 * group + 2 + groups };
            let want: Vec<u32> = (0..groups).map(sum).collect();
            assert!(succeed(sums.download()) == want, "{groups} workgroups");
            let ran = (0..groups).filter(|group| !returns(*group)).count() as u32;
            assert_eq!(succeed(runs.download()), [ran * 2]);
        }
    });
}

#[test]
fn counts_may_share_a_read_buffer() {
    let source = "
        @group(0) @binding(0) var<storage, read> all: array<u32>;
        @group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
        @compute @workgroup_size(1)
        fn main() { atomicAdd(&sum, all[5] * 100u + all[6] * 10u + all[7]); }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let mut words = vec![u32::MAX; 300];
        for start in [0usize, 1, 5, 63, 130, 297] {
            words[5..8].copy_from_slice(&[2, 1, 3]);
            words[start..start + 3].copy_from_slice(&[2, 1, 3]);
            let all = succeed(gpu.upload(&words));
            let sum = succeed(gpu.alloc::<u32>(1));
            let counts = succeed(all.slice(start..start + 3));
            let launch = Launch::indirect(&counts);
            succeed(gpu.run(&kernel, &[&all, &sum], launch));
            let read = words[5].wrapping_mul(100).wrapping_add(words[6].wrapping_mul(10));
            let expected = read.wrapping_add(words[7]).wrapping_mul(6);
            assert_eq!(succeed(sum.download()), [expected], "at word {start}");
            words[start..start + 3].copy_from_slice(&[u32::MAX; 3]);
        }
    });
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
        assert_says(&refusal, &["counts of Launch::indirect", "it has elements of f32"]);
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

#[test]
fn immediates_and_uniforms_beside_counts() {
    let source = "
        struct Params { a: u32, b: u32 }
        @group(0) @binding(0) var<uniform> scale: u32;
        @group(0) @binding(1) var<storage, read_write> out: array<u32>;
        var<immediate> params: Params;
        @compute @workgroup_size(2)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            out[id.x] = scale * id.x + params.a - params.b;
        }";
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let (scale, out) = (succeed(gpu.upload(&[3u32])), succeed(gpu.alloc::<u32>(10)));
        let launch = Launch::indirect(&upload(gpu, [4, 1, 1])).immediates(&[70u32, 20]);
        succeed(gpu.run(&kernel, &[&scale, &out], launch));
        let want: Vec<u32> = (0..10).map(|n| if n < 8 { 3 * n + 50 } else { 0 }).collect();
        assert_eq!(succeed(out.download()), want);
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
    let source = counting([1, 1, 1]);
    let kernel = succeed(gpu.compile(&source));
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
