//! Compares the backend wgpu with wgpu itself on the same Vulkan device, by the kernels of the
//! corpus. See README.md.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};
use scry_gpu::{Binding, Device, Kernel, Launch, UntypedBuffer};

mod cases;
mod raw;

use cases::Case;
use raw::Raw;

/// Minimum duration of a measurement in seconds: shorter launches are repeated in one submission.
const MIN_SECONDS: f64 = 0.01;

/// The largest geometric mean of our times relative to wgpu's.
const GOAL: f64 = 1.05;

/// Largest difference of two floats, relative to the larger of their magnitude and 1.
const TOLERANCE: f32 = 1e-4;

/// Compares the backend wgpu with wgpu. Exits with 1 if the goal is missed, with 2 if results
/// differ or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// The device, as `Device::open` selects it; wgpu opens the device of the same name.
    #[arg(long, default_value = "wgpu")]
    device: String,
    /// Only kernels whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number, of which the fastest counts.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// Count the processor time of all threads instead of the time that passes: for machines that
    /// are used by others.
    #[arg(long)]
    cpu_time: bool,
}

/// A kernel on our device, with its operands.
struct Ours {
    device: Device,
    kernel: Kernel,
    buffers: Vec<UntypedBuffer>,
}

fn main() -> ExitCode {
    runner::exit_status("bench_wgpu_backend", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    let device = Device::open(&arguments.device)?;
    println!("device: {} ({})", device.name(), device.info().driver);
    let raw = Raw::open(device.name())?;
    let mut table = Table::default();
    table.heading();
    let mut logarithms = Vec::new();
    for case in cases::all() {
        if runner::is_matched(&arguments.only, case.name) {
            let [ours, theirs] = compare(&case, &device, &raw, arguments)?;
            let (name, rate) = (case.name, String::new());
            table.row(&Row { name, rate, ours, peer: "wgpu", theirs, goal: Goal::None });
            logarithms.push((ours / theirs).ln());
        }
    }
    ensure!(!logarithms.is_empty(), "no kernel is selected");
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    let is_reached = mean <= GOAL;
    let verdict = if is_reached { "PASS" } else { "FAIL" };
    println!("\nour time / wgpu's, geometric mean: {mean:.3}  ≤ {GOAL} {verdict}");
    Ok(is_reached)
}

/// Compares results, then measures both, interleaved; returns the fastest launch of each in
/// seconds.
fn compare(case: &Case, device: &Device, raw: &Raw, arguments: &Arguments) -> Result<[f64; 2]> {
    let (ours, theirs) = (Ours::bind(device, case)?, raw.bind(case)?);
    ours.run(case, 1)?;
    raw.run(&theirs, 1)?;
    for (binding, operand) in case.operands.iter().enumerate() {
        let len = operand.words.len();
        check(case, binding, &ours.read(binding, len)?, &raw.read(&theirs, binding, len)?)?;
    }
    let start = Instant::now();
    raw.run(&theirs, 1)?;
    let repeats = (MIN_SECONDS / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 200.0) as usize;
    let mut fastest = [f64::INFINITY; 2];
    for _ in 0..=arguments.samples {
        let mut note = |which: usize, run: &dyn Fn() -> Result<()>| -> Result<()> {
            let seconds = seconds(arguments.cpu_time, run)? / repeats as f64;
            fastest[which] = fastest[which].min(seconds);
            Ok(())
        };
        note(0, &|| ours.run(case, repeats))?;
        note(1, &|| raw.run(&theirs, repeats))?;
    }
    Ok(fastest)
}

/// Returns an error unless the words are equal, as numbers or within the tolerance as floats.
fn check(case: &Case, binding: usize, ours: &[u32], theirs: &[u32]) -> Result<()> {
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let [x, y] = [*ours, *theirs].map(f32::from_bits);
        let is_close = (x - y).abs() <= TOLERANCE * x.abs().max(1.0);
        ensure!(
            ours == theirs
                || (is_close && x.abs() > f32::MIN_POSITIVE)
                || (case.is_open)(binding, at),
            "{}: word {at} of binding {binding} is {ours:#x} ({x}), wgpu's {theirs:#x} ({y})",
            case.name
        );
    }
    Ok(())
}

/// Returns the seconds of a run.
fn seconds(counts_cpu_time: bool, run: impl FnOnce() -> Result<()>) -> Result<f64> {
    if counts_cpu_time {
        let start = processor_seconds();
        run()?;
        return Ok(processor_seconds() - start);
    }
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64())
}

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

impl Ours {
    fn bind(device: &Device, case: &Case) -> Result<Self> {
        let kernel = device.compile(case.source).context(case.name)?;
        let upload = |operand: &cases::Operand| -> Result<UntypedBuffer> {
            let mut bytes = bytemuck::cast_slice(&operand.words).to_vec();
            bytes.resize(bytes.len().next_multiple_of(16), 0);
            // The bytes beyond the operand are padding of uniform buffers.
            let len = if operand.is_uniform { bytes.len() } else { 4 * operand.words.len() };
            Ok(device.upload_bytes(None, &bytes[..len])?)
        };
        let buffers = case.operands.iter().map(upload).collect::<Result<_>>()?;
        Ok(Self { device: device.clone(), kernel, buffers })
    }

    /// Runs the kernel several times in one submission, and waits.
    fn run(&self, case: &Case, times: usize) -> Result<()> {
        let bindings: Vec<_> = self.buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
        let mut batch = self.device.batch();
        for _ in 0..times {
            let launch = Launch::workgroups(case.workgroups);
            let launch = match &case.immediate {
                Some(value) => launch.immediates(value),
                None => launch,
            };
            batch.run(&self.kernel, &bindings, launch)?;
        }
        Ok(batch.submit()?)
    }

    /// Returns the first words of a binding.
    fn read(&self, binding: usize, len: usize) -> Result<Vec<u32>> {
        let mut words: Vec<_> =
            bytemuck::pod_collect_to_vec(&self.buffers[binding].download_bytes()?);
        words.truncate(len);
        Ok(words)
    }
}
