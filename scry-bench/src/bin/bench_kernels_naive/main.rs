//! Compares each operation of the kernel library with the kernel that a user would write first, on
//! the CPU device and on software Vulkan drivers. See README.md.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use scry_gpu::Device;
use scry_kernels::Kernels;

mod bench;
mod images;
mod indices;
mod points;
mod products;
mod random;
mod rows;
mod sorts;
mod sums;
mod weights;

use bench::Bench;
use scry_bench::runner;
use scry_bench::table::Table;

/// Compares the kernel library with naive kernels. Exits with 1 if a goal is missed, with 2 if a
/// result differs or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only rows whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number, of which the fastest counts.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// Count the processor time of all threads instead of the time that passes: for machines that
    /// are used by others.
    #[arg(long)]
    cpu_time: bool,
    /// The device, as `Device::open` selects it.
    #[arg(long, default_value = "cpu")]
    device: String,
}

fn main() -> ExitCode {
    runner::exit_status("bench_kernels_naive", run(Arguments::parse()))
}

fn run(arguments: Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    let device = Device::open(&arguments.device)?;
    println!("device: {} ({})", device.name(), device.info().driver);
    let mut bench = Bench {
        kernels: Kernels::new(&device)?,
        device,
        samples: arguments.samples,
        counts_cpu_time: arguments.cpu_time,
        only: arguments.only,
        table: Table::default(),
    };
    bench.table.heading();
    products::run(&mut bench)?;
    rows::run(&mut bench)?;
    sums::run(&mut bench)?;
    sorts::run(&mut bench)?;
    weights::run(&mut bench)?;
    indices::run(&mut bench)?;
    images::run(&mut bench)?;
    points::run(&mut bench)?;
    random::run(&mut bench)?;
    Ok(bench.table.finish())
}
