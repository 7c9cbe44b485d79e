//! Compares scry-gpu with its peers on a Vulkan device, in one run: wgpu 30 and, with the feature
//! `scry-gpu-01`, scry-gpu 0.1.0. README.md explains the numbers.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use scry_bench::runner;
use scry_gpu::{Device, DeviceKind};

mod peer;
mod report;
mod scenario;
mod stats;

use peer::{Peer, Scry, Wgpu};
use report::Report;
use scenario::{Bench, SCENARIOS};

/// Compares scry-gpu with its peers on one Vulkan device. Exits with 1 if a goal is missed, with 2
/// if the comparison could not be made.
#[derive(Parser)]
struct Arguments {
    /// The device, as `Device::open` selects it.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// Small sizes, as on software devices.
    #[arg(long)]
    quick: bool,
    /// Only this scenario; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Measurements of each number.
    #[arg(long, default_value_t = 20, value_name = "N")]
    samples: usize,
    /// File for JSON lines.
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Measure our library without its peers, as when two builds of it are compared.
    #[arg(long)]
    ours_only: bool,
    /// Print the kernels' sources, check that all libraries agree on their results, and stop.
    #[arg(long)]
    kernels: bool,
    /// Compute one result with this peer on the device named by `--cold-device`: the process that
    /// the scenario `cold` measures.
    #[arg(long, hide = true)]
    cold_child: Option<String>,
    /// Name of the device of `--cold-child`, as other libraries select it.
    #[arg(long, hide = true, default_value = "")]
    cold_device: String,
}

fn main() -> ExitCode {
    runner::exit_status("bench_wgpu_compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    if let Some(peer) = &arguments.cold_child {
        scenario::cold::child(peer, &arguments.device, &arguments.cold_device)?;
        return Ok(true);
    }
    let names = SCENARIOS.iter().map(|scenario| scenario.name);
    runner::check_only("scenario", &arguments.only, names)?;
    runner::check_samples(arguments.samples)?;
    let mut bench = open(arguments)?;
    if arguments.kernels {
        scry_bench::kernels::ALL.iter().for_each(|(name, wgsl)| println!("// {name}\n{wgsl}"));
    }
    scenario::sanity::run(&mut bench)?;
    if arguments.kernels {
        return Ok(true);
    }
    for scenario in SCENARIOS {
        if runner::is_selected(&arguments.only, scenario.name) {
            bench.report.heading(scenario.heading);
            (scenario.run)(&mut bench)?;
        }
    }
    bench.report.finish()
}

/// Opens the same device with every peer, and starts the report.
fn open(arguments: &Arguments) -> Result<Bench> {
    let device = Device::open(&arguments.device)?;
    let (name, driver) = (device.name().to_owned(), device.info().driver.clone());
    let software = device.info().kind == DeviceKind::Software;
    let quick = arguments.quick || software;
    println!("{name} ({driver}){}", if quick { ", small sizes" } else { "" });
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(Scry::new(device))];
    if !arguments.ours_only {
        peers.push(Box::new(Wgpu::open(&name)?));
        #[cfg(feature = "scry-gpu-01")]
        match peer::Scry01::open(&name) {
            Ok(peer) => peers.push(Box::new(peer)),
            Err(error) => println!("scry-gpu 0.1 is left out: {error:#}"),
        }
    }
    Ok(Bench {
        peers,
        report: Report::new(&name, software, arguments.json.as_deref())?,
        quick,
        selector: arguments.device.clone(),
        device: name,
        samples: arguments.samples,
    })
}
