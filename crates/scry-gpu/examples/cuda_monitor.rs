//! Monitors a CUDA device: memory, clocks, load, power, and launches.
//!
//!     cargo run --release -p scry-gpu --example cuda_monitor -- [--once] [--busy]
//!
//! Prints a line per second: memory in use by all processes, and by this process's buffers; clocks,
//! load and power from NVML, NVIDIA's management library; launches of this process. `--busy` runs
//! matrix products at the same time. Ends after one line with `--once`, or after ten lines if the
//! output is not a terminal.

use std::env;
use std::error::Error;
use std::io::{IsTerminal as _, stdout};
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::{BackendKind, Device, Kernel, Result};

#[path = "shared/nvml.rs"]
mod nvml;

use nvml::{Nvml, Sample};

const PERIOD: Duration = Duration::from_secs(1);

/// The kernel of `--busy`, which multiplies a matrix by itself.
const WORK: &str = scry_gpu::shaders::matmul::COARSE_8X8;
const SIDE: u32 = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = env::args().skip(1).collect::<Vec<_>>();
    let mut is_given = |name: &str| {
        let count = options.len();
        options.retain(|option| option != name);
        options.len() < count
    };
    let (once, busy) = (is_given("--once"), is_given("--busy"));
    if let Some(unknown) = options.first() {
        return Err(format!("`{unknown}` is neither `--once` nor `--busy`").into());
    }
    let gpu = match Device::with_backend(BackendKind::Cuda) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("no device to monitor: {error}");
            return Ok(());
        }
    };
    println!("{} ({})", gpu.name(), gpu.info().driver);
    let nvml = open_nvml(&gpu);
    let work = if busy { Some(Work::new(&gpu)?) } else { None };
    let mut monitor = Monitor { gpu, nvml, since: Instant::now(), launches: 0 };
    println!("{HEADING}");
    let lines = match (once, stdout().is_terminal()) {
        (true, _) => 1,
        (false, true) => usize::MAX,
        (false, false) => 10,
    };
    for _ in 0..lines {
        wait_period(work.as_ref(), &monitor.gpu)?;
        println!("{}", monitor.line()?);
    }
    Ok(())
}

/// Opens NVML for the device; prints the reason if that fails.
fn open_nvml(gpu: &Device) -> Option<Nvml> {
    let pci = gpu.info().pci.map(|pci| pci.to_string()).unwrap_or_default();
    Nvml::open(&pci).map_err(|error| println!("no clocks, load or power: {error}")).ok()
}

/// Waits for one period; runs `work` during it, if there is any.
fn wait_period(work: Option<&Work>, gpu: &Device) -> Result<()> {
    let end = Instant::now() + PERIOD;
    while let Some(work) = work.filter(|_| Instant::now() < end) {
        work.run(gpu)?;
    }
    thread::sleep(end.saturating_duration_since(Instant::now()));
    Ok(())
}

const HEADING: &str =
    "memory used   total       buffers     SM clock     mem clock   load    power      launches/s";

/// State between two lines.
struct Monitor {
    gpu: Device,
    nvml: Option<Nvml>,
    since: Instant,
    launches: u64,
}

impl Monitor {
    fn line(&mut self) -> Result<String> {
        let total = self.gpu.info().memory;
        let used = self.gpu.free_memory()?.map(|free| total - free.min(total));
        let Sample { sm_clock, memory_clock, load, power } =
            self.nvml.as_ref().map(Nvml::sample).unwrap_or_default();
        let text = |value: Option<u32>, unit: &str| {
            value.map_or_else(|| "?".to_owned(), |value| format!("{value} {unit}"))
        };
        Ok(format!(
            "{:<14}{:<12}{:<12}{:<13}{:<12}{:<8}{:<11}{:.0}",
            used.map_or_else(|| "?".to_owned(), size),
            size(total),
            size(self.gpu.memory_usage().bytes),
            text(sm_clock, "MHz"),
            text(memory_clock, "MHz"),
            text(load, "%"),
            text(power.map(|milliwatts| milliwatts / 1000), "W"),
            self.rate()
        ))
    }

    /// Returns the launches per second since the previous line.
    fn rate(&mut self) -> f64 {
        let launches = self.gpu.launch_count();
        let rate = (launches - self.launches) as f64 / self.since.elapsed().as_secs_f64();
        (self.launches, self.since) = (launches, Instant::now());
        rate
    }
}

/// Formats a number of bytes.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// The work of `--busy`.
struct Work {
    kernel: Kernel,
    matrix: scry_gpu::Buffer<f32>,
    product: scry_gpu::Buffer<f32>,
}

impl Work {
    fn new(gpu: &Device) -> Result<Self> {
        let count = (SIDE * SIDE) as usize;
        let matrix: Vec<f32> = (0..count).map(|i| (i % 7) as f32 - 3.0).collect();
        Ok(Self {
            kernel: gpu.compile(WORK)?,
            matrix: gpu.upload(&matrix)?,
            product: gpu.alloc(count)?,
        })
    }

    /// Launches the kernel ten times, and waits.
    fn run(&self, gpu: &Device) -> Result<()> {
        let (grid, sides) = ([SIDE / 8; 2], [SIDE; 3]);
        for _ in 0..10 {
            let buffers: [&dyn scry_gpu::Binding; 3] = [&self.matrix, &self.matrix, &self.product];
            gpu.run_with_immediates(&self.kernel, &buffers, grid, &sides)?;
        }
        gpu.wait()
    }
}
