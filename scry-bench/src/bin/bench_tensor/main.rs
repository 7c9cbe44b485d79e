//! Measures tensors and compiled graphs beside PyTorch, on an NVIDIA GPU, and beside bare launches.
//! See README.md.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use scry_tensor::Device;

mod chains;
mod eager;
mod layers;
mod rows;

use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};
use scry_bench::torch::Torch;

/// Measures tensors and compiled graphs. Exits with 1 if a goal is missed, with 2 if a result is
/// wrong or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only this part: eager, chains, rows or layers; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// Our device, as `Device::open` selects it.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// The Python that has PyTorch; `none` omits the comparison with it.
    #[arg(long, default_value = "python3")]
    python: String,
    /// Small sizes, to try it out.
    #[arg(long)]
    quick: bool,
}

/// The context of all parts.
pub struct Bench {
    gpu: Device,
    torch: Option<Torch>,
    samples: usize,
    quick: bool,
    table: Table,
}

const PARTS: [runner::Part<Bench>; 4] =
    [("eager", eager::run), ("chains", chains::run), ("rows", rows::run), ("layers", layers::run)];

fn main() -> ExitCode {
    runner::exit_status("bench_tensor", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    runner::check_parts(&arguments.only, &PARTS)?;
    let torch = match arguments.python.as_str() {
        "none" => None,
        python => Some(Torch::start(python, include_str!("torch.py"))?),
    };
    let gpu = Device::open(&arguments.device)?;
    println!("ours: {} ({})", gpu.name(), gpu.info().driver);
    if let Some(torch) = &torch {
        println!("peer: {}", torch.name);
    }
    let (samples, quick) = (arguments.samples, arguments.quick);
    let mut bench = Bench { gpu, torch, samples, quick, table: Table::default() };
    bench.table.heading();
    runner::run_parts(&mut bench, &arguments.only, &PARTS)?;
    Ok(bench.table.finish())
}

impl Bench {
    /// Returns the medians of interleaved measurements, in seconds.
    fn medians(&self, measurements: &mut [&mut dyn FnMut() -> Result<f64>]) -> Result<Vec<f64>> {
        let mut times = vec![Vec::new(); measurements.len()];
        for round in 0..=self.samples {
            for (measure, times) in measurements.iter_mut().zip(&mut times) {
                let seconds = measure()?;
                if round > 0 {
                    times.push(seconds);
                }
            }
        }
        times.into_iter().map(median).collect()
    }

    /// Returns the mean seconds of calls, with one wait for the device at their end.
    fn seconds(&self, calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
        self.gpu.wait()?;
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        self.gpu.wait()?;
        Ok(start.elapsed().as_secs_f64() / calls as f64)
    }

    /// Compares calls with PyTorch's function `name`, of as many calls, and prints a row.
    fn compare(
        &mut self,
        title: &str,
        rate: String,
        calls: usize,
        mut ours: impl FnMut() -> Result<()>,
        (name, numbers): (&str, &[usize]),
        goal: Goal,
    ) -> Result<()> {
        let Some(mut torch) = self.torch.take() else {
            let ours = self.medians(&mut [&mut || self.seconds(calls, &mut ours)])?[0];
            self.row(title, rate, ours, "", f64::NAN, Goal::None);
            return Ok(());
        };
        let numbers = [&[calls], numbers].concat();
        let medians = self.medians(&mut [&mut || self.seconds(calls, &mut ours), &mut || {
            torch.measure(name, &numbers)
        }]);
        self.torch = Some(torch);
        let [ours, theirs] = medians?[..] else { bail!("two medians are expected") };
        self.row(title, rate, ours, "PyTorch", theirs, goal);
        Ok(())
    }

    fn row(&mut self, name: &str, rate: String, ours: f64, peer: &str, theirs: f64, goal: Goal) {
        self.table.row(&Row { name, rate, ours, peer, theirs, goal });
    }
}

/// Returns the median; an error if there are no values.
fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
