//! Compares two SPIR-V writers, naga's and ours from the kernel IR, by the speed of the same
//! kernels on one Vulkan device; optionally with another device, such as CUDA's. See README.md.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Parser;
use scry_bench::runner;
use scry_gpu::testing::SpirvWriter;
use scry_gpu::{Binding, Device, DeviceKind, Kernel, UntypedBuffer};

mod cases;

use cases::Case;

/// Launches in a measurement.
const REPEATS: usize = 5;

/// Compares the writers. Exits with 1 if results differ, with 2 if something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// The Vulkan device, as `Device::open` selects it.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// A further device that runs the same kernels, such as `cuda`.
    #[arg(long)]
    beside: Option<String>,
    /// Only kernels whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Small sizes, as on software devices.
    #[arg(long)]
    quick: bool,
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
}

/// A device, opened with one writer, and its name in the table.
struct Contestant {
    name: &'static str,
    device: Device,
}

/// A kernel, compiled for one device, with its operands there.
struct BoundCase {
    device: Device,
    kernel: Kernel,
    buffers: Vec<UntypedBuffer>,
    /// Seconds to compile the kernel.
    compile_seconds: f64,
}

fn main() -> ExitCode {
    runner::exit_status("bench_spirv_compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    let open = |writer: SpirvWriter| writer.while_opening(|| Device::open(&arguments.device));
    let mut contestants = vec![
        Contestant { name: "naga", device: open(SpirvWriter::Naga)? },
        Contestant { name: "kir", device: open(SpirvWriter::Kir)? },
    ];
    if let Some(selector) = &arguments.beside {
        contestants.push(Contestant { name: "beside", device: Device::open(selector)? });
    }
    for Contestant { name, device } in &contestants {
        println!("{name}: {} ({})", device.name(), device.info().driver);
    }
    let software = contestants[0].device.info().kind == DeviceKind::Software;
    print!("\n{:<28}", "kernel");
    for Contestant { name, .. } in &contestants {
        print!(" {:>11} {:>16}", format!("{name} time"), "rate");
    }
    println!(" {:>9} {:>9}  compile naga, kir", "naga/kir", "kir/best");
    let mut agree = true;
    for case in cases::all(arguments.quick || software) {
        if runner::is_matched(&arguments.only, &case.name) {
            agree &= compare(&case, &contestants, arguments.samples)?;
        }
    }
    Ok(agree)
}

/// Measures a kernel on all devices, interleaved, and prints a row; returns true if the results
/// agree.
fn compare(case: &Case, contestants: &[Contestant], samples: usize) -> Result<bool> {
    let operands = case.operands();
    let bound = contestants
        .iter()
        .map(|contestant| BoundCase::new(&contestant.device, case, &operands))
        .collect::<Result<Vec<_>>>()?;
    // One launch from equal contents: kernels may read what they write.
    let results = bound.iter().map(|bound| bound.result(case)).collect::<Result<Vec<_>>>()?;
    let agree = results.iter().all(|result| *result == results[0]);
    let mut times = vec![Vec::new(); bound.len()];
    for round in 0..=samples {
        for (index, bound) in bound.iter().enumerate() {
            let seconds = bound.measure(case)?;
            if round > 0 {
                times[index].push(seconds);
            }
        }
    }
    let medians = times.into_iter().map(median).collect::<Result<Vec<_>>>()?;
    print!("{:<28}", case.name);
    for seconds in &medians {
        print!(" {:>8.1} µs {:>16}", seconds * 1e6, case.rate(*seconds));
    }
    let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
    print!(" {:>9.3} {:>9.3}", medians[0] / medians[1], medians[1] / best);
    print!("  {:.1} ms, {:.1} ms", bound[0].compile_seconds * 1e3, bound[1].compile_seconds * 1e3);
    println!("{}", if agree { "" } else { "  RESULTS DIFFER" });
    Ok(agree)
}

impl BoundCase {
    fn new(device: &Device, case: &Case, operands: &[Vec<u8>]) -> Result<Self> {
        let start = Instant::now();
        let kernel = device.compile(case.source)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let buffers = operands.iter().map(|data| device.upload_bytes(None, data));
        let buffers = buffers.collect::<scry_gpu::Result<_>>()?;
        Ok(Self { device: device.clone(), kernel, buffers, compile_seconds })
    }

    fn bindings(&self) -> Vec<&dyn Binding> {
        self.buffers.iter().map(|buffer| buffer as &dyn Binding).collect()
    }

    /// Launches once, and returns the contents of the last buffer.
    fn result(&self, case: &Case) -> Result<Vec<u8>> {
        self.device.run(&self.kernel, &self.bindings(), case.launch())?;
        Ok(self.buffers.last().context("a kernel without buffers")?.download_bytes()?)
    }

    /// Returns the median device time of a launch in seconds.
    fn measure(&self, case: &Case) -> Result<f64> {
        let mut batch = self.device.batch();
        for _ in 0..REPEATS {
            batch.run(&self.kernel, &self.bindings(), case.launch())?;
        }
        let times = batch.submit_timed()?;
        median(times.iter().map(|time| time.as_secs_f64()).collect())
    }
}

/// Returns the median; an error if there are no values.
fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
