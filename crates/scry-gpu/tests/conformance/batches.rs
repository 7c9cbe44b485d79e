//! Tests with random programs of kernels, copies, fills and writes, against a simulation on the
//! host: however they are submitted, the steps must behave as if executed in order.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use scry_gpu::{Batch, Binding, Buffer, Device, Download, Kernel, Launch, Result};
use scry_test_support::{on_each_device, succeed};

use crate::harness::{assert_contains, expect_error};
use crate::programs::{
    BLOCKS, BUFFERS, BlockRange, Model, Program, Step, Submission, program, step,
};

/// The kernels of [`Step`], which [`Model`] simulates.
const MIX: &str = "
    var<immediate> salt: u32;
    @group(0) @binding(0) var<storage, read> source: array<u32>;
    @group(0) @binding(1) var<storage, read_write> into: array<u32>;
    @compute @workgroup_size(16)
    fn mix_words(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.x;
        let n = arrayLength(&source);
        if i >= arrayLength(&into) { return; }
        let others = source[(i * 7u + salt % 1000u) % n] + source[(n - 1u) - i % n];
        into[i] = into[i] * 3u + others + salt;
    }";

const JOIN: &str = "
    @group(0) @binding(0) var<storage, read> a: array<u32>;
    @group(0) @binding(1) var<storage, read> b: array<u32>;
    @group(0) @binding(2) var<storage, read_write> into: array<u32>;
    @compute @workgroup_size(16)
    fn join_words(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.x;
        if i >= arrayLength(&into) { return; }
        into[i] = a[i % arrayLength(&a)] ^ (b[(i * 5u) % arrayLength(&b)] + i);
    }";

const TALLY: &str = "
    @group(0) @binding(0) var<storage, read> source: array<u32>;
    @group(0) @binding(1) var<storage, read_write> into: array<atomic<u32>>;
    @compute @workgroup_size(16)
    fn tally(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x >= arrayLength(&source) { return; }
        atomicAdd(&into[source[id.x] % arrayLength(&into)], id.x + 1u);
    }";

/// Executes a program on the device.
struct Runner {
    gpu: Device,
    mix: Kernel,
    join: Kernel,
    tally: Kernel,
    buffers: Vec<Buffer<u32>>,
}

impl Runner {
    fn new(gpu: &Device) -> Self {
        Self {
            gpu: gpu.clone(),
            mix: succeed(gpu.compile(MIX)),
            join: succeed(gpu.compile(JOIN)),
            tally: succeed(gpu.compile(TALLY)),
            buffers: Vec::new(),
        }
    }

    /// Returns the kernel of a step and its arguments; `None` for other steps.
    fn launch(&self, model: &Model, step: &Step) -> Option<(&Kernel, Vec<BlockRange>, Launch)> {
        let size = |range: &BlockRange| Launch::invocations(model.range(*range).len());
        Some(match step {
            Step::Mix { from, to, salt } => {
                (&self.mix, vec![*from, *to], size(to).immediates(salt))
            }
            Step::Join { a, b, to } => (&self.join, vec![*a, *b, *to], size(to)),
            Step::Tally { from, to } => (&self.tally, vec![*from, *to], size(from)),
            _ => return None,
        })
    }

    /// Adds a step to a batch; returns the download that it starts.
    fn add(&self, batch: &mut Batch, model: &Model, step: &Step) -> Result<Option<Download<u32>>> {
        if let Some((kernel, ranges, launch)) = self.launch(model, step) {
            let slice = |range: &BlockRange| self.buffers[range.buffer].slice(model.range(*range));
            let slices = ranges.iter().map(slice).collect::<Result<Vec<_>>>()?;
            let bindings: Vec<&dyn Binding> = slices.iter().map(|s| s as &dyn Binding).collect();
            batch.run(kernel, &bindings, launch)?;
            return Ok(None);
        }
        match step {
            Step::Copy { from, to, len } => {
                let (source, target) = model.copy_ranges(*from, *to, *len);
                let source = self.buffers[from[0]].slice(source)?;
                batch.copy(source, self.buffers[to[0]].slice(target)?)?;
            }
            Step::Fill { buffer, value } => {
                batch.fill(&self.buffers[*buffer], *value)?;
            }
            Step::Write { buffer, salt } => {
                batch.write(&self.buffers[*buffer], &model.write_data(*salt))?;
            }
            Step::Download { buffer } => return batch.download(&self.buffers[*buffer]).map(Some),
            _ => unreachable!("kernels are handled above"),
        }
        Ok(None)
    }

    /// Runs a step by itself; returns the data of a download.
    fn run_step(&self, model: &Model, step: &Step) -> Result<Option<Vec<u32>>> {
        if let Some((kernel, ranges, launch)) = self.launch(model, step) {
            let slice = |range: &BlockRange| self.buffers[range.buffer].slice(model.range(*range));
            let slices = ranges.iter().map(slice).collect::<Result<Vec<_>>>()?;
            let bindings: Vec<&dyn Binding> = slices.iter().map(|s| s as &dyn Binding).collect();
            self.gpu.run(kernel, &bindings, launch)?;
            return Ok(None);
        }
        match step {
            Step::Copy { from, to, len } => {
                let (source, target) = model.copy_ranges(*from, *to, *len);
                let source = self.buffers[from[0]].slice(source)?;
                source.copy_to(self.buffers[to[0]].slice(target)?)?;
            }
            Step::Fill { buffer, value } => self.buffers[*buffer].fill(*value)?,
            Step::Write { buffer, salt } => {
                self.buffers[*buffer].write(&model.write_data(*salt))?
            }
            Step::Download { buffer } => return self.buffers[*buffer].download().map(Some),
            _ => unreachable!("kernels are handled above"),
        }
        Ok(None)
    }

    /// Runs each step by itself, and compares downloads at once.
    fn run_direct(&self, model: &mut Model, steps: &[Step]) {
        for step in steps {
            let result = self.run_step(model, step);
            if model.is_invalid(step) {
                assert!(result.is_err(), "{step:?} was not rejected");
            } else {
                assert_eq!(succeed(result), model.step(step), "{step:?}");
            }
        }
    }

    /// Adds steps to a batch; returns it with the accepted steps and their downloads.
    fn batch(&self, model: &Model, steps: &[Step]) -> (Batch, Vec<Step>, Vec<Download<u32>>) {
        let mut batch = self.gpu.batch();
        let mut accepted = Vec::new();
        let mut downloads = Vec::new();
        for step in steps {
            let result = self.add(&mut batch, model, step);
            if model.is_invalid(step) {
                assert!(result.is_err(), "{step:?} was not rejected");
                continue;
            }
            downloads.extend(succeed(result));
            accepted.push(step.clone());
        }
        (batch, accepted, downloads)
    }

    /// Submits steps; returns their downloads with the expected words, to be compared later.
    fn run(
        &self,
        model: &mut Model,
        submission: Submission,
        steps: &[Step],
    ) -> Vec<(Download<u32>, Vec<u32>)> {
        if let Submission::Direct = submission {
            self.run_direct(model, steps);
            return Vec::new();
        }
        let (mut batch, accepted, downloads) = self.batch(model, steps);
        let mut simulated = Vec::new();
        let replays = match submission {
            Submission::Recording(replays) => {
                let recording = succeed(batch.record());
                for _ in 0..replays {
                    drop(succeed(recording.replay()));
                }
                replays
            }
            Submission::BatchAndWait => {
                succeed(batch.submit());
                1
            }
            _ => {
                drop(succeed(batch.submit_async()));
                1
            }
        };
        for _ in 0..replays {
            simulated = accepted.iter().filter_map(|step| model.step(step)).collect();
        }
        downloads.into_iter().zip(simulated).collect()
    }

    fn check(&mut self, block: usize, program: &Program) {
        let mut model = Model { buffers: vec![vec![0; block * BLOCKS]; BUFFERS], block };
        // One buffer starts with data, the others are zeroed at their first use.
        model.buffers[0] = model.write_data(77);
        self.buffers = vec![succeed(self.gpu.upload(&model.buffers[0]))];
        self.buffers.extend((1..BUFFERS).map(|_| succeed(self.gpu.alloc(block * BLOCKS))));
        let mut downloads = Vec::new();
        for (submission, steps) in program {
            downloads.extend(self.run(&mut model, *submission, steps));
        }
        for (buffer, expected) in self.buffers.iter().zip(&model.buffers) {
            assert_eq!(&succeed(buffer.download()), expected);
        }
        for (download, expected) in downloads {
            assert_eq!(succeed(download.get()), expected);
        }
    }
}

fn check_programs(cases: u32, programs: impl Strategy<Value = Program>) {
    on_each_device(|gpu| {
        let block = (gpu.info().binding_alignment as usize / 4).max(4);
        let runner = std::cell::RefCell::new(Runner::new(gpu));
        let config =
            ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let result = TestRunner::new(config).run(&programs, |program| {
            runner.borrow_mut().check(block, &program);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn random_batches_match_simulation() {
    let steps = prop::collection::vec(step(), 1..60);
    check_programs(60, steps.prop_map(|steps| vec![(Submission::Batch, steps)]));
}

#[test]
fn random_programs_match_simulation() {
    check_programs(60, program());
}

/// Each step reads the previous one's output.
#[test]
fn long_chains_are_ordered() {
    let source = "
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let n = arrayLength(&input);
            if id.x < n { output[id.x] = input[(id.x + 1u) % n] + 1u; }
        }";
    let n = 1000;
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(source));
        let start: Vec<u32> = (0..n).collect();
        let a = succeed(gpu.upload(&start));
        let b = succeed(gpu.alloc::<u32>(n as usize));
        let mut batch = gpu.batch();
        for _ in 0..250 {
            succeed(batch.run(&kernel, &[&a, &b], n));
            succeed(batch.run(&kernel, &[&b, &a], n));
        }
        let recording = succeed(batch.record());
        drop(succeed(recording.replay()));
        succeed(succeed(recording.replay()).wait());
        let expected: Vec<u32> = (0..n).map(|i| (i + 1000) % n + 1000).collect();
        assert_eq!(succeed(a.download()), expected);
    });
}

/// Downloads in the middle of a batch return the contents at that point.
#[test]
fn downloads_see_earlier_steps_only() {
    let add = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&data) { data[id.x] += id.x; }
        }";
    let n = 5000u32;
    on_each_device(|gpu| {
        let kernel = succeed(gpu.compile(add));
        let data = succeed(gpu.alloc::<u32>(n as usize));
        let mut batch = gpu.batch();
        let mut downloads = Vec::new();
        for _ in 0..20 {
            downloads.push(succeed(batch.download(&data)));
            succeed(batch.run(&kernel, &[&data], n));
        }
        assert!(downloads[0].get().is_err(), "the batch is not submitted yet");
        drop(succeed(batch.submit_async()));
        drop(data);
        for (times, download) in (0..20).zip(&downloads).rev() {
            let expected: Vec<u32> = (0..n).map(|i| i * times).collect();
            assert_eq!(succeed(download.get()), expected, "after {times} steps");
        }
    });
}

/// A download of a recording returns the data of the latest replay only.
#[test]
fn recording_downloads_show_latest_replay() {
    let add = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(256)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] += 1u; }";
    let n = 1 << 21;
    on_each_device(|gpu| {
        let data = succeed(gpu.alloc::<u32>(n));
        let mut batch = gpu.batch();
        succeed(batch.run(&succeed(gpu.compile(add)), &[&data], n));
        let download = succeed(batch.download(&data));
        let recording = succeed(batch.record());
        for replay in 1..=10 {
            drop(succeed(recording.replay()));
            let words = succeed(download.get());
            let latest = words.iter().filter(|word| **word == replay).count();
            assert_eq!(latest, n, "words of replay {replay}");
        }
    });
}

/// The commands of the first submission are not submitted again; downloads belong to their
/// submission.
#[test]
fn submitted_batches_can_be_reused() {
    on_each_device(|gpu| {
        let data = succeed(gpu.alloc::<u32>(100));
        let mut batch = gpu.batch();
        succeed(batch.fill(&data, 1));
        let first = succeed(batch.download(&data));
        drop(succeed(batch.submit_async()));
        let second = succeed(batch.download(&data));
        let text = expect_error(second.get());
        assert_contains(&text, &["Download::get", "not submitted"]);
        assert_eq!(succeed(first.get()), [1; 100], "the first fill was submitted");
        succeed(succeed(batch.fill(&data, 2)).submit());
        assert_eq!(succeed(first.get()), [1; 100]);
        assert_eq!(succeed(second.get()), [1; 100], "it was read before the second fill");
        succeed(batch.submit());
        assert_eq!(succeed(data.download()), [2; 100]);
        let recording = succeed(succeed(batch.fill(&data, 3)).record());
        let third = succeed(batch.download(&data));
        succeed(batch.submit());
        assert_eq!(succeed(third.get()), [2; 100], "the recording was not replayed yet");
        succeed(succeed(recording.replay()).wait());
        assert_eq!(succeed(data.download()), [3; 100]);
        assert!(succeed(batch.submit_timed()).is_empty());
    });
}
