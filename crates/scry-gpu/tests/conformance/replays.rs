//! Tests of inputs that are written for one replay of a recording, without a wait between replays.

use scry_gpu::{Buffer, Device, Recording};
use scry_test_support::{on_each_device, succeed};

/// Stores a weighted sum of the inputs to `sums[params.step]`.
const SUM: &str = "
    struct Params { step: u32, scale: f32 }
    @group(0) @binding(0) var<uniform> params: Params;
    @group(0) @binding(1) var<storage, read> token: array<u32>;
    @group(0) @binding(2) var<storage, read_write> sums: array<f32>;
    @compute @workgroup_size(1)
    fn sum() {
        var sum = 0u;
        for (var i = 0u; i < arrayLength(&token); i++) { sum += token[i] * (i + 1u); }
        sums[params.step] = f32(sum) * params.scale;
    }";

#[derive(Clone, Copy, scry_gpu::Element)]
#[repr(C)]
struct Params {
    step: u32,
    scale: f32,
}

const REPLAYS: u32 = 300;

/// A recording of [`SUM`], its inputs, and the results of all replays.
struct SumRecording {
    params: Buffer<Params>,
    token: Buffer<u32>,
    sums: Buffer<f32>,
    recording: Recording,
}

impl SumRecording {
    fn new(gpu: &Device) -> Self {
        let params = succeed(gpu.alloc::<Params>(1));
        let token = succeed(gpu.alloc::<u32>(3));
        let sums = succeed(gpu.alloc::<f32>(REPLAYS as usize));
        let kernel = succeed(gpu.compile(SUM));
        let mut batch = gpu.batch();
        succeed(batch.run(&kernel, &[&params, &token, &sums], 1));
        let recording = succeed(batch.record());
        Self { params, token, sums, recording }
    }

    /// Replays with new inputs, of which `token[0]` and `token[2]` stay unchanged.
    fn replay(&self, step: u32) {
        let mut inputs = self.recording.replay_with();
        succeed(inputs.write(&self.params, &[Params { step, scale: 0.5 }]));
        let middle = succeed(self.token.slice(1..2));
        // Of two writes of the same element the later one counts.
        succeed(inputs.write(middle, &[1_000_000]));
        succeed(inputs.write(middle, &[step * 2]));
        drop(succeed(inputs.submit()));
    }
}

#[test]
fn replays_read_their_own_inputs() {
    on_each_device(|gpu| {
        let sum = SumRecording::new(gpu);
        succeed(sum.token.write(&[4, 0, 2]));
        (0..REPLAYS).for_each(|step| sum.replay(step));
        let expected: Vec<f32> = (0..REPLAYS).map(|step| (10 + 4 * step) as f32 * 0.5).collect();
        assert_eq!(succeed(sum.sums.download()), expected);
        // Inputs persist: a replay without inputs reads the latest.
        succeed(sum.sums.fill(0.0));
        succeed(succeed(sum.recording.replay()).wait());
        let sums = succeed(sum.sums.download());
        assert_eq!(sums[REPLAYS as usize - 1], expected[REPLAYS as usize - 1]);
        assert_eq!(sums[0], 0.0);
    });
}

/// Inputs in new buffers: unwritten elements are zero, although nothing was submitted before.
#[test]
fn unwritten_inputs_are_zero() {
    on_each_device(|gpu| {
        let sum = SumRecording::new(gpu);
        sum.replay(7);
        let mut expected = vec![0.0; REPLAYS as usize];
        expected[7] = 7.0 * 4.0 * 0.5;
        assert_eq!(succeed(sum.sums.download()), expected);
    });
}

/// Other work on the inputs is ordered with the replay by submission.
#[test]
fn inputs_are_ordered_with_other_submissions() {
    on_each_device(|gpu| {
        let (a, b) = (succeed(gpu.alloc::<u32>(1000)), succeed(gpu.alloc::<u32>(1000)));
        let mut batch = gpu.batch();
        succeed(batch.copy(&a, &b));
        let copied = succeed(batch.download(&b));
        let recording = succeed(batch.record());
        for round in 0..50u32 {
            succeed(a.fill(round));
            let mut inputs = recording.replay_with();
            succeed(inputs.write(succeed(a.slice(..500)), &[round + 100; 500]));
            let ticket = succeed(inputs.submit());
            succeed(a.fill(77));
            let copied = succeed(copied.get());
            assert_eq!(
                (copied[0], copied[499], copied[500], copied[999]),
                (round + 100, round + 100, round, round)
            );
            succeed(ticket.wait());
        }
        assert_eq!(succeed(a.download()), [77; 1000]);
    });
}

/// Threads that replay one recording see their own inputs only.
#[test]
fn threads_keep_their_inputs() {
    on_each_device(|gpu| {
        let sum = SumRecording::new(gpu);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let sum = &sum;
                scope.spawn(move || (0..50).for_each(|i| sum.replay(i * 4 + thread)));
            }
        });
        let sums = succeed(sum.sums.download());
        for step in 0..200u32 {
            assert_eq!(sums[step as usize], (4 * step) as f32 * 0.5, "replay {step}");
        }
    });
}
