//! Compares the CPU device with lavapipe, through our own Vulkan backend, and with a plain Rust
//! loop: the same kernels on the same processors in the same run. See README.md.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use scry_bench::runner;
use scry_gpu::{BackendKind, Device, DeviceKind};

mod cases;
mod host;
mod images;
mod job;
mod latency;
mod oracle;
mod table;

use cases::{CASES, Case};
use job::BoundJob;
use table::Table;

/// Compares the CPU device with lavapipe. Exits with 1 if a goal is missed, with 2 if a result is
/// wrong or something could not be measured.
#[derive(Parser)]
struct Arguments {
    /// Only this kernel; may be given several times.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Small sizes.
    #[arg(long)]
    quick: bool,
    /// Measurements of each number.
    #[arg(long, default_value_t = 5, value_name = "N")]
    samples: usize,
    /// Run one kernel on the CPU device for some seconds, for a profiler, without any comparison.
    #[arg(long, value_name = "NAME")]
    profile_only: Option<String>,
    /// Duration of `--profile-only`.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    seconds: f64,
    /// Our device, as `Device::open` selects it.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// The peer; the first software device of Vulkan unless given.
    #[arg(long, value_name = "SELECTOR")]
    peer: Option<String>,
}

fn main() -> ExitCode {
    runner::exit_status("bench_cpu_compare", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool> {
    check_arguments(arguments)?;
    let ours = Device::open(&arguments.device)?;
    if let Some(name) = &arguments.profile_only {
        return profile(&ours, name, arguments).map(|()| true);
    }
    let peer = open_peer(arguments.peer.as_deref())?;
    println!("ours: {} ({})", ours.name(), ours.info().driver);
    println!("peer: {} ({})", peer.name(), peer.info().driver);
    let wanted = |name: &str| runner::is_selected(&arguments.only, name);
    let peer_label = if arguments.peer.is_some() { "peer" } else { "lavapipe" };
    let mut table = Table::new(arguments.quick, peer_label);
    for case in CASES.iter().filter(|case| wanted(case.name)) {
        compare(case, [&ours, &peer], arguments, &mut table)
            .with_context(|| case.name.to_owned())?;
    }
    for latency in latency::ALL.iter().filter(|latency| wanted(latency.name)) {
        let times = latency.compare([&ours, &peer], arguments.samples)?;
        table.latency(latency, times);
    }
    for image in images::ALL.iter().filter(|image| wanted(image.name)) {
        let times = image.compare(&ours, arguments.samples)?;
        table.image(image, times);
    }
    Ok(table.finish())
}

/// Rejects unknown names, and measurements without samples.
fn check_arguments(arguments: &Arguments) -> Result<()> {
    let kernels = CASES.iter().map(|case| case.name);
    let latencies = latency::ALL.iter().map(|latency| latency.name);
    let images = images::ALL.iter().map(|image| image.name);
    let requested: Vec<_> = arguments.only.iter().chain(&arguments.profile_only).cloned().collect();
    runner::check_only("kernel", &requested, kernels.chain(latencies).chain(images))?;
    runner::check_samples(arguments.samples)?;
    Ok(())
}

fn open_peer(selector: Option<&str>) -> Result<Device> {
    if let Some(selector) = selector {
        return Ok(Device::open(selector)?);
    }
    let devices = Device::list();
    let info = devices
        .iter()
        .find(|info| info.backend == BackendKind::Vulkan && info.kind == DeviceKind::Software)
        .context(
            "there is no software device of Vulkan to compare with: install lavapipe (Debian: \
             mesa-vulkan-drivers), or name another peer with --peer",
        )?;
    Ok(Device::open(&format!("{}:{}", info.backend, info.index))?)
}

/// Measures one kernel on all devices, interleaved, and checks the results.
fn compare(
    case: &Case,
    devices: [&Device; 2],
    arguments: &Arguments,
    table: &mut Table,
) -> Result<()> {
    let job = (case.make)(arguments.quick);
    let [ours, peer] = devices.map(|device| BoundJob::new(device, &job));
    let (mut ours, mut peer) = (ours.context("ours")?, peer.context("the peer")?);
    let mut host = case.host.map(|make| make(&job)).transpose()?;
    let mut times = [const { Vec::new() }; 3];
    // The first round is not counted: it touches pages, and decides how often to launch.
    for round in 0..=arguments.samples {
        let mut now = [ours.measure()?, peer.measure()?, 0.0];
        if let Some(host) = &mut host {
            now[2] = host.measure();
        }
        if round > 0 {
            times.iter_mut().zip(now).for_each(|(times, now)| times.push(now));
        }
    }
    let results = [ours.finish()?, peer.finish()?];
    for (who, (rounds, result)) in ["ours", "the peer"].iter().zip(&results) {
        (job.check)(*rounds, result).with_context(|| format!("result of {who}"))?;
    }
    if let Some(host) = host {
        let (rounds, result) = host.finish();
        (job.check)(rounds, &result).context("result of the Rust loop")?;
    }
    table.case(case, &job, times.map(job::median));
    Ok(())
}

/// Runs one kernel repeatedly for the given time, and prints its median time.
fn profile(ours: &Device, name: &str, arguments: &Arguments) -> Result<()> {
    let Some(case) = CASES.iter().find(|case| case.name == name) else {
        bail!("`{name}` is no kernel that can be run repeatedly");
    };
    let job = (case.make)(arguments.quick);
    let mut bound = BoundJob::new(ours, &job)?;
    let (start, limit) = (Instant::now(), Duration::from_secs_f64(arguments.seconds));
    let mut times = Vec::new();
    while start.elapsed() < limit || times.is_empty() {
        times.push(bound.measure()?);
    }
    let (rounds, result) = bound.finish()?;
    (job.check)(rounds, &result)?;
    let seconds = job::median(times);
    println!(
        "{name}: {} a launch, {}, {rounds} launches",
        table::readable(seconds),
        job.rate(seconds)
    );
    Ok(())
}
