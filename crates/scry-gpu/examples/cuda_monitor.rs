//! Watches a CUDA device: its memory, its clocks, and the launches that it is handed.
//!
//!     cargo run --release -p scry-gpu --example cuda_monitor -- [--once] [--busy]
//!
//! Prints a line each second: memory that anybody holds, and that this process' buffers hold;
//! clocks, load and power by NVIDIA's management library; launches of this process. With `--busy`
//! there are some to be seen, and with `--once` there is one line. Where nobody looks on, since the
//! output is no terminal, it ends after ten.

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

/// Keeps the device at work: the square of a matrix, again and again.
const WORK: &str = scry_gpu::shaders::matmul::COARSE_8X8;
const SIDE: u32 = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = env::args().skip(1).collect::<Vec<_>>();
    let mut is_given = |name: &str| {
        let before = options.len();
        options.retain(|option| option != name);
        options.len() < before
    };
    let (once, busy) = (is_given("--once"), is_given("--busy"));
    if let Some(unknown) = options.first() {
        return Err(format!("`{unknown}` is neither `--once` nor `--busy`").into());
    }
    let gpu = match Device::with_backend(BackendKind::Cuda) {
        Ok(gpu) => gpu,
        Err(error) => {
            println!("there is nothing to watch: {error}");
            return Ok(());
        }
    };
    println!("{} ({})", gpu.name(), gpu.info().driver);
    let nvml = opened(&gpu);
    let work = if busy { Some(Work::new(&gpu)?) } else { None };
    let mut watch = Watch { gpu, nvml, since: Instant::now(), launches: 0 };
    println!("{HEADING}");
    let lines = match (once, stdout().is_terminal()) {
        (true, _) => 1,
        (false, true) => usize::MAX,
        (false, false) => 10,
    };
    for _ in 0..lines {
        pass(work.as_ref(), &watch.gpu)?;
        println!("{}", watch.line()?);
    }
    Ok(())
}

/// The management library's view of the device; says what is missing.
fn opened(gpu: &Device) -> Option<Nvml> {
    let pci = gpu.info().pci.map(|pci| pci.to_string()).unwrap_or_default();
    Nvml::open(&pci).map_err(|why| println!("clocks are unknown: {why}")).ok()
}

/// Lets the time of a line pass, at work if there is some.
fn pass(work: Option<&Work>, gpu: &Device) -> Result<()> {
    let end = Instant::now() + PERIOD;
    while let Some(work) = work.filter(|_| Instant::now() < end) {
        work.run(gpu)?;
    }
    thread::sleep(end.saturating_duration_since(Instant::now()));
    Ok(())
}

const HEADING: &str =
    "memory held   of          ours        processors   memory      load    power      launches/s";

/// What a line compares with the one before.
struct Watch {
    gpu: Device,
    nvml: Option<Nvml>,
    since: Instant,
    launches: u64,
}

impl Watch {
    fn line(&mut self) -> Result<String> {
        let total = self.gpu.info().memory;
        let held = self.gpu.free_memory()?.map(|free| total - free.min(total));
        let Sample { processors, memory, load, power } =
            self.nvml.as_ref().map(Nvml::sample).unwrap_or_default();
        let text = |value: Option<u32>, unit: &str| {
            value.map_or_else(|| "?".to_owned(), |value| format!("{value} {unit}"))
        };
        Ok(format!(
            "{:<14}{:<12}{:<12}{:<13}{:<12}{:<8}{:<11}{:.0}",
            held.map_or_else(|| "?".to_owned(), size),
            size(total),
            size(self.gpu.memory_usage().bytes),
            text(processors, "MHz"),
            text(memory, "MHz"),
            text(load, "%"),
            text(power.map(|milliwatts| milliwatts / 1000), "W"),
            self.rate()
        ))
    }

    /// Launches of a second since the line before.
    fn rate(&mut self) -> f64 {
        let launches = self.gpu.launch_count();
        let rate = (launches - self.launches) as f64 / self.since.elapsed().as_secs_f64();
        (self.launches, self.since) = (launches, Instant::now());
        rate
    }
}

/// Bytes as people read them.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// Something to do.
struct Work {
    kernel: Kernel,
    factor: scry_gpu::Buffer<f32>,
    product: scry_gpu::Buffer<f32>,
}

impl Work {
    fn new(gpu: &Device) -> Result<Self> {
        let count = (SIDE * SIDE) as usize;
        let factor: Vec<f32> = (0..count).map(|i| (i % 7) as f32 - 3.0).collect();
        Ok(Self {
            kernel: gpu.compile(WORK)?,
            factor: gpu.upload(&factor)?,
            product: gpu.alloc(count)?,
        })
    }

    /// Some launches, and the end of them.
    fn run(&self, gpu: &Device) -> Result<()> {
        let (grid, sides) = ([SIDE / 8; 2], [SIDE; 3]);
        for _ in 0..10 {
            let buffers: [&dyn scry_gpu::Binding; 3] = [&self.factor, &self.factor, &self.product];
            gpu.run_with_immediates(&self.kernel, &buffers, grid, &sides)?;
        }
        gpu.wait()
    }
}
