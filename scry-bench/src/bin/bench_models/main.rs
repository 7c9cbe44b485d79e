//! Measures models beside PyTorch, llama.cpp and onnxruntime. See README.md.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use scry_models::{DType, Device, Encoder};

mod cold;
mod decoder;
mod encoder;
mod gguf;
#[cfg(unix)]
mod llama_cpp;
mod onnxruntime;

use scry_bench::runner;
use scry_bench::table::{Goal, Row, Table};
use scry_bench::torch::Torch;
use scry_tensor::PlanReport;

/// Measures models. Exits with 1 if a goal is missed, with 2 if a result is wrong or something
/// could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only this part: encoder, shapes, cold, decoder, llama_cpp or onnxruntime; may be given
    /// several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number.
    #[arg(long, default_value_t = 10, value_name = "N")]
    samples: usize,
    /// Our device, as `Device::open` selects it.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// The Python that has PyTorch and transformers, and onnxruntime for that part; `none` omits
    /// the comparison, and needs a folder that an earlier run has written.
    #[arg(long, default_value = "python3")]
    python: String,
    /// The Python that has xllamacpp, for the part llama_cpp.
    #[arg(long, default_value = "python3", value_name = "PYTHON")]
    llama_cpp: String,
    /// The model of the part llama_cpp; random weights by default.
    #[arg(long, value_name = "FILE")]
    gguf: Option<PathBuf>,
    /// Folder for the models; a temporary one by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Layers of the decoder.
    #[arg(long, default_value_t = 30)]
    layers: usize,
    /// Omit what torch.compile needs minutes for.
    #[arg(long)]
    quick: bool,
    /// Print the kernels of the plans of encoders and decoders.
    #[arg(long)]
    explain: bool,
    /// Internal: print the seconds of a process until its first vector.
    #[arg(long, hide = true)]
    child: bool,
}

/// The context of all parts.
pub struct Bench {
    gpu: Device,
    torch: Option<Torch>,
    folder: PathBuf,
    arguments: Arguments,
    table: Table,
}

const PARTS: &[runner::Part<Bench>] = &[
    ("encoder", encoder::run),
    ("shapes", encoder::shapes),
    ("decoder", decoder::run),
    ("cold", cold::run),
    #[cfg(unix)]
    ("llama_cpp", llama_cpp::run),
    ("onnxruntime", onnxruntime::run),
];

fn main() -> ExitCode {
    let start = Instant::now();
    let arguments = Arguments::parse();
    let result = if arguments.child { cold::child(start, &arguments) } else { run(arguments) };
    runner::exit_status("bench_models", result)
}

fn run(arguments: Arguments) -> Result<bool> {
    runner::check_samples(arguments.samples)?;
    runner::check_parts(&arguments.only, PARTS)?;
    let temporary = tempfile::tempdir()?;
    let folder = arguments.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    // Processors are compared with llama.cpp alone.
    let is_alone = arguments.only.iter().all(|name| name == "llama_cpp");
    let torch = match arguments.python.as_str() {
        "none" => None,
        _ if is_alone && !arguments.only.is_empty() => None,
        python => {
            let settings = format!("FOLDER = {folder:?}\nLAYERS = {}\n", arguments.layers);
            Some(Torch::start(python, &(settings + include_str!("torch.py")))?)
        }
    };
    let gpu = Device::open(&arguments.device)?;
    println!("ours: {} ({})", gpu.name(), gpu.info().driver);
    if let Some(torch) = &torch {
        println!("peer: {}", torch.name);
    }
    let mut bench = Bench { gpu, torch, folder, arguments, table: Table::default() };
    bench.table.heading();
    let only = bench.arguments.only.clone();
    runner::run_parts(&mut bench, &only, PARTS)?;
    Ok(bench.table.finish())
}

impl Bench {
    fn encoder(&self, dtype: DType) -> Result<Encoder> {
        load(&self.folder, &self.gpu, dtype)
    }

    /// Prints the kernels of a plan: their number, or each if the user asked for it.
    fn explain(&self, what: &str, report: &PlanReport) {
        println!("kernels of a {what}: {}", report.kernels.len());
        if self.arguments.explain {
            println!("{report}");
        }
    }

    /// Returns the median of our seconds, and of PyTorch's functions with as many calls, measured
    /// by turns. A function that fails has NaN.
    fn medians(
        &mut self,
        calls: usize,
        mut ours: impl FnMut() -> Result<()>,
        theirs: &[(&str, &[usize])],
    ) -> Result<Vec<f64>> {
        let mut times = vec![Vec::new(); 1 + theirs.len()];
        // One peer after the other: each is compiled once, and only the latest is kept.
        let mut measure = |times: &mut Vec<f64>| -> Result<()> {
            self.gpu.wait()?;
            let start = Instant::now();
            for _ in 0..calls {
                ours()?;
            }
            self.gpu.wait()?;
            times.push(start.elapsed().as_secs_f64() / calls as f64);
            Ok(())
        };
        measure(&mut Vec::new())?;
        for nth in 0..theirs.len().max(1) {
            for _ in 0..self.arguments.samples {
                measure(&mut times[0])?;
                if let (Some(torch), Some((name, numbers))) = (&mut self.torch, theirs.get(nth)) {
                    let numbers = [&[calls], *numbers].concat();
                    times[nth + 1].push(torch.measure(name, &numbers)?);
                }
            }
        }
        Ok(times.into_iter().map(median).collect())
    }

    fn row(&mut self, name: &str, rate: String, ours: f64, peer: &str, theirs: f64, goal: Goal) {
        let goal = if theirs.is_nan() { Goal::None } else { goal };
        self.table.row(&Row { name, rate, ours, peer, theirs, goal });
    }
}

/// Returns whether a Python has a package.
fn has_package(python: &str, package: &str) -> bool {
    let mut command = Command::new(python);
    let import = format!("import {package}");
    command.args(["-c", &import]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Loads the encoder that PyTorch has written.
fn load(folder: &Path, gpu: &Device, dtype: DType) -> Result<Encoder> {
    Ok(Encoder::options().dtype(dtype).load(folder.join("encoder"), gpu)?)
}

/// Returns the median; NaN of no numbers, and if one is NaN.
fn median(mut times: Vec<f64>) -> f64 {
    if times.is_empty() || times.iter().any(|time| time.is_nan()) {
        return f64::NAN;
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
