//! Compares the kernel library on an NVIDIA GPU with PyTorch, which calls cuBLAS, cuDNN and its own
//! kernels. See README.md.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Parser;
use scry_gpu::Device;
use scry_kernels::Kernels;

mod attention;
mod chain;
mod clock;
mod element;
mod gemm;
mod primitives;
mod quant;
mod rows;

use clock::{Caches, Clock};
use scry_bench::runner;
use scry_bench::table::Table;
use scry_bench::torch::Torch;

/// Compares the kernel library with PyTorch. Exits with 1 if a goal is missed, with 2 if a
/// result is wrong or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only this part: gemm, rows, attention, quant or primitives; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Use random shapes instead of the fixed ones, in the parts gemm and rows; omit the others.
    #[arg(long)]
    shapes: bool,
    /// Seed of the random shapes; by default a new one for each run.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// Our device, as `Device::open` selects it.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: String,
}

/// The context of all parts.
pub struct Bench {
    kernels: Kernels,
    clock: Clock,
    torch: Torch,
    samples: usize,
    /// Seed of random shapes, if they are asked for.
    shape_seed: Option<u64>,
    table: Table,
}

const PARTS: [runner::Part<Bench>; 5] = [
    ("gemm", gemm::run),
    ("rows", rows::run),
    ("attention", attention::run),
    ("quant", quant::run),
    ("primitives", primitives::run),
];

fn main() -> ExitCode {
    runner::exit_status("bench_kernels_compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    runner::check_parts(&arguments.only, &PARTS)?;
    let device = Device::open(&arguments.device)?;
    let mut bench = Bench {
        kernels: Kernels::new(&device)?,
        clock: Clock::new(&device)?,
        torch: Torch::start(&arguments.python, include_str!("torch.py"))?,
        samples: arguments.samples,
        shape_seed: arguments.shapes.then(|| arguments.seed.unwrap_or_else(time_seed)),
        table: Table::default(),
    };
    println!("ours: {} ({})", device.name(), device.info().driver);
    println!("peer: {}", bench.torch.name);
    println!("{}", Caches::rule());
    if let Some(seed) = bench.shape_seed {
        println!("shapes are drawn with --seed {seed}");
    }
    bench.table.heading();
    runner::run_parts(&mut bench, &arguments.only, &PARTS)?;
    Ok(bench.table.finish())
}

/// Returns a seed that differs between runs.
fn time_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}
