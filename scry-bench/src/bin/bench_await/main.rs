//! Compares futures with blocking calls on the same device: the cost of awaiting. See README.md.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use scry_gpu::{Buffer, Device, Kernel};
use tokio::runtime::{Builder, Runtime};

use scry_bench::data;
use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};

/// Adds one to each element.
const INCREMENT: &str = include_str!("../../kernels/increment.wgsl");

/// Minimum ratio of blocking to awaited time: an awaited round trip takes at most 1.5 times as
/// long.
const ROUND_TRIP_GOAL: f64 = 0.667;

/// Round trips in a measurement.
const TRIPS: usize = 100;

/// Sizes of transfers in bytes.
const SIZES: [usize; 3] = [4 << 10, 1 << 20, 64 << 20];

/// Compares awaiting with blocking. Exits with 1 if a goal is missed, with 2 if a result is wrong.
#[derive(Parser)]
struct Arguments {
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// The device, as `Device::open` selects it.
    #[arg(long, default_value = "cuda")]
    device: String,
}

fn main() -> ExitCode {
    runner::exit_status("bench_await", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    let gpu = Device::open(&arguments.device)?;
    println!("{}; {} samples, medians", gpu.info(), arguments.samples);
    let mut table = Table::default();
    table.heading();
    round_trips(&gpu, arguments.samples, &mut table)?;
    for size in SIZES {
        transfers(&gpu, size, arguments.samples, &mut table)?;
    }
    Ok(table.finish())
}

/// An executor that runs one future.
enum Executor {
    Pollster,
    Tokio(Runtime),
}

impl Executor {
    fn all() -> Result<[(&'static str, Self); 3]> {
        Ok([
            ("pollster", Self::Pollster),
            ("tokio, one thread", Self::Tokio(Builder::new_current_thread().build()?)),
            (
                "tokio, two threads",
                Self::Tokio(Builder::new_multi_thread().worker_threads(2).build()?),
            ),
        ])
    }

    fn block_on<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match self {
            Self::Pollster => pollster::block_on(future),
            // Spawned as a task: the threads of the runtime run it.
            Self::Tokio(runtime) => runtime.block_on(async { tokio::spawn(future).await? }),
        }
    }
}

/// Compares a launch and the wait for it: blocking, and as a task under each executor.
fn round_trips(gpu: &Device, samples: usize, table: &mut Table) -> Result<()> {
    let kernel = gpu.compile(INCREMENT)?;
    let buffer = Arc::new(gpu.alloc::<f32>(64)?);
    let executors = Executor::all()?;
    let mut times = vec![Vec::new(); 1 + executors.len()];
    for sample in 0..=samples {
        let mut round = vec![blocking_trips(gpu, &kernel, &buffer)?];
        for (_, executor) in &executors {
            round.push(awaited_trips(executor, gpu, &kernel, &buffer)?);
        }
        // The first sample warms up.
        if sample > 0 {
            times.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
        }
    }
    let trips = (TRIPS * (samples + 1) * times.len()) as f32;
    ensure!(buffer.download()? == [trips; 64], "some of {trips} launches did nothing");
    let theirs = median(&mut times[0]);
    for ((name, _), times) in executors.iter().zip(&mut times[1..]) {
        let name = &format!("awaited round trip, {name}");
        let goal = Goal::AtLeast(ROUND_TRIP_GOAL);
        let ours = median(times);
        table.row(&Row { name, rate: String::new(), ours, peer: "blocking", theirs, goal });
    }
    Ok(())
}

fn blocking_trips(gpu: &Device, kernel: &Kernel, buffer: &Buffer<f32>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..TRIPS {
        gpu.batch().run(kernel, &[buffer], 64)?.submit_async()?.wait()?;
    }
    Ok(start.elapsed().as_secs_f64() / TRIPS as f64)
}

fn awaited_trips(
    executor: &Executor,
    gpu: &Device,
    kernel: &Kernel,
    buffer: &Arc<Buffer<f32>>,
) -> Result<f64> {
    let (gpu, kernel, buffer) = (gpu.clone(), kernel.clone(), buffer.clone());
    executor.block_on(async move {
        let start = Instant::now();
        for _ in 0..TRIPS {
            gpu.batch().run(&kernel, &[&*buffer], 64)?.submit_async()?.await?;
        }
        Ok(start.elapsed().as_secs_f64() / TRIPS as f64)
    })
}

/// Compares an upload and a download: blocking, and as futures.
fn transfers(gpu: &Device, size: usize, samples: usize, table: &mut Table) -> Result<()> {
    let numbers = data::random(7, size / 4);
    let mut times = [const { Vec::new() }; 4];
    for sample in 0..=samples {
        let start = Instant::now();
        let buffer = gpu.upload(&numbers)?;
        gpu.wait()?;
        let uploaded = start.elapsed();
        let blocking = buffer.download()?;
        let downloaded = start.elapsed() - uploaded;
        let start = Instant::now();
        let buffer = pollster::block_on(gpu.upload_async(&numbers))?;
        pollster::block_on(gpu.wait_async())?;
        let awaited_upload = start.elapsed();
        let awaited = pollster::block_on(buffer.download_async())?;
        let awaited_download = start.elapsed() - awaited_upload;
        ensure!(blocking == numbers && awaited == numbers, "{size} bytes came back changed");
        let now = [uploaded, awaited_upload, downloaded, awaited_download];
        if sample > 0 {
            times.iter_mut().zip(now).for_each(|(times, time)| times.push(time.as_secs_f64()));
        }
    }
    let [uploads, awaited_uploads, downloads, awaited_downloads] = &mut times;
    let rows = [("upload", awaited_uploads, uploads), ("download", awaited_downloads, downloads)];
    for (what, ours, theirs) in rows {
        let (ours, theirs) = (median(ours), median(theirs));
        let name = &format!("awaited {what}, {} KiB", size >> 10);
        let rate = format!("{:.2} GB/s", size as f64 / ours / 1e9);
        table.row(&Row { name, rate, ours, peer: "blocking", theirs, goal: Goal::None });
    }
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
