//! Compares our CUDA device with PyTorch, which calls cuBLAS for matrix products, and with our
//! Vulkan device on the same GPU, which runs the same WGSL. See README.md.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use scry_gpu::Device;

mod compile;
mod gemm;
mod latency;
mod streams;
mod tensor_cores;

use scry_bench::runner;
use scry_bench::table::Table;
use scry_bench::torch::Torch;

/// Compares the CUDA device with PyTorch and Vulkan. Exits with 1 if a goal is missed, with 2 if a
/// result is wrong or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only this part: gemm, tensor-cores, streams, latency or compile; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// Our device, as `Device::open` selects it.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Our device to compare with; `none` leaves it out.
    #[arg(long, default_value = "vulkan")]
    vulkan: String,
    /// The Python that has PyTorch.
    #[arg(long, default_value = "python3")]
    python: String,
    /// Compile one kernel in this process, and print the seconds.
    #[arg(long, hide = true)]
    compile_child: bool,
}

/// The context of all parts.
pub struct Bench {
    ours: Device,
    vulkan: Option<Device>,
    torch: Torch,
    samples: usize,
    table: Table,
}

const PARTS: [runner::Part<Bench>; 5] = [
    ("gemm", gemm::run),
    ("tensor-cores", tensor_cores::run),
    ("streams", streams::run),
    ("latency", latency::run),
    ("compile", compile::run),
];

fn main() -> ExitCode {
    runner::exit_status("bench_cuda_compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.compile_child {
        return compile::child(&arguments.device).map(|()| true);
    }
    runner::check_samples(arguments.samples)?;
    runner::check_parts(&arguments.only, &PARTS)?;
    let vulkan = &arguments.vulkan;
    let mut bench = Bench {
        ours: Device::open(&arguments.device)?,
        vulkan: if vulkan == "none" { None } else { Some(Device::open(vulkan)?) },
        torch: Torch::start(&arguments.python, include_str!("torch.py"))?,
        samples: arguments.samples,
        table: Table::default(),
    };
    let describe = |device: &Device| format!("{} ({})", device.name(), device.info().driver);
    println!("ours:   {}", describe(&bench.ours));
    println!("vulkan: {}", bench.vulkan.as_ref().map_or("left out".to_owned(), describe));
    println!("peer:   {}", bench.torch.name);
    bench.table.heading();
    runner::run_parts(&mut bench, &arguments.only, &PARTS)?;
    Ok(bench.table.finish())
}

/// Returns the median of measurements; NaN if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
