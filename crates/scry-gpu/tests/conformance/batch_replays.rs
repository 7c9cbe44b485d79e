//! Tests of batches that contain replays: the same results as of the commands themselves.

use scry_gpu::{Batch, Buffer, Device, Kernel, Recording};
use scry_test_support::{on_each_device, succeed};

/// Adds a multiple of one buffer to another.
const MIX: &str = "
    var<immediate> factor: u32;
    @group(0) @binding(0) var<storage, read> source: array<u32>;
    @group(0) @binding(1) var<storage, read_write> sink: array<u32>;
    @compute @workgroup_size(64)
    fn mix(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&sink) { sink[id.x] += factor * source[id.x]; }
    }";

const BUFFERS: usize = 4;
const COUNT: usize = 200;

/// A command on some of [`BUFFERS`] buffers, and its effect.
#[derive(Debug, Clone, Copy)]
enum Work {
    Mix { from: usize, to: usize, factor: u32 },
    Copy { from: usize, to: usize },
    Fill { to: usize, value: u32 },
}

impl Work {
    fn random(below: &mut impl FnMut(usize) -> usize) -> Self {
        let from = below(BUFFERS);
        let to = (from + 1 + below(BUFFERS - 1)) % BUFFERS;
        match below(6) {
            0 => Self::Copy { from, to },
            1 => Self::Fill { to, value: below(1000) as u32 },
            _ => Self::Mix { from, to, factor: below(7) as u32 },
        }
    }

    fn add_to(self, batch: &mut Batch, mix: &Kernel, buffers: &[Buffer<u32>]) {
        let added = match self {
            Self::Mix { from, to, factor } => {
                batch.run_with_immediates(mix, &[&buffers[from], &buffers[to]], COUNT, &factor)
            }
            Self::Copy { from, to } => batch.copy(&buffers[from], &buffers[to]),
            Self::Fill { to, value } => batch.fill(&buffers[to], value),
        };
        succeed(added.map(|_| ()));
    }

    fn apply(self, values: &mut [u32; BUFFERS]) {
        match self {
            Self::Mix { from, to, factor } => {
                values[to] = values[to].wrapping_add(factor.wrapping_mul(values[from]));
            }
            Self::Copy { from, to } => values[to] = values[from],
            Self::Fill { to, value } => values[to] = value,
        }
    }
}

/// Returns pseudo-random numbers below an argument.
fn random(mut state: u32) -> impl FnMut(usize) -> usize {
    move |n| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % n
    }
}

fn record(gpu: &Device, mix: &Kernel, buffers: &[Buffer<u32>], works: &[Work]) -> Recording {
    let mut batch = gpu.batch();
    works.iter().for_each(|work| work.add_to(&mut batch, mix, buffers));
    succeed(batch.record())
}

/// The buffers are not initialised before the first batch.
#[test]
fn replays_equal_their_commands() {
    on_each_device(|gpu| {
        let mix = succeed(gpu.compile(MIX));
        for seed in 0..20 {
            let mut below = random(seed);
            let buffers: Vec<Buffer<u32>> =
                (0..BUFFERS).map(|_| succeed(gpu.alloc(COUNT))).collect();
            let works = |below: &mut _, count| -> Vec<Work> {
                (0..count).map(|_| Work::random(below)).collect()
            };
            let recorded: Vec<Vec<Work>> = [1, 4, 9].map(|n| works(&mut below, n)).into();
            let recordings: Vec<Recording> =
                recorded.iter().map(|it| record(gpu, &mix, &buffers, it)).collect();
            let mut expected = [0; BUFFERS];
            for _ in 0..4 {
                let mut batch = gpu.batch();
                for _ in 0..below(8) {
                    let count = below(4);
                    for work in works(&mut below, count) {
                        work.add_to(&mut batch, &mix, &buffers);
                        work.apply(&mut expected);
                    }
                    let chosen = below(recordings.len());
                    succeed(batch.replay(&recordings[chosen]).map(|_| ()));
                    recorded[chosen].iter().for_each(|work| work.apply(&mut expected));
                }
                drop(succeed(batch.submit_async()));
            }
            for (buffer, expected) in buffers.iter().zip(expected) {
                assert_eq!(succeed(buffer.download()), [expected; COUNT], "seed {seed}");
            }
        }
    });
}

#[test]
fn downloads_follow_replays() {
    on_each_device(|gpu| {
        let mix = succeed(gpu.compile(MIX));
        let buffers: Vec<Buffer<u32>> = (0..2).map(|_| succeed(gpu.upload(&[1; COUNT]))).collect();
        let work = Work::Mix { from: 0, to: 1, factor: 2 };
        let recording = record(gpu, &mix, &buffers, &[work, work]);
        let mut batch = gpu.batch();
        let before = succeed(batch.download(&buffers[1]));
        succeed(batch.replay(&recording).map(|_| ()));
        let after = succeed(batch.download(&buffers[1]));
        drop(succeed(batch.submit_async()));
        assert_eq!(succeed(before.get()), [1; COUNT]);
        assert_eq!(succeed(after.get()), [5; COUNT]);
    });
}

#[test]
fn threads_share_a_recording() {
    on_each_device(|gpu| {
        let mix = succeed(gpu.compile(MIX));
        let buffers: Vec<Buffer<u32>> = (0..2).map(|_| succeed(gpu.upload(&[1; COUNT]))).collect();
        let recording = &record(gpu, &mix, &buffers, &[Work::Mix { from: 0, to: 1, factor: 1 }; 5]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let mut batch = gpu.batch();
                        succeed(batch.replay(recording).map(|_| ()));
                        drop(succeed(batch.submit_async()));
                    }
                });
            }
        });
        assert_eq!(succeed(buffers[1].download()), [1 + 4 * 100 * 5; COUNT]);
    });
}
