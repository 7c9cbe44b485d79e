//! Time of a process from its start to its first correct result.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use scry_gpu::Device;

use super::{Bench, increment};
#[cfg(feature = "scry-gpu-01")]
use crate::peer::Scry01;
use crate::peer::{Peer, Scry, Wgpu};
use crate::report::{Rule, Subject};
use crate::stats::Summary;
use scry_bench::data;
use scry_bench::kernels::INCREMENT;

const LEN: usize = 1024;
const GOAL: f64 = 1.05;
/// Processes of each peer that fill the disk caches, not measured.
const WARM_UP: usize = 2;
/// The line that a child prints once its result is correct.
const DONE: &str = "right";

/// Measures processes of this program, each with one peer.
pub fn run(bench: &mut Bench) -> Result<()> {
    let caches = tempfile::tempdir()?;
    let names: Vec<&str> = bench.peers.iter().map(|peer| peer.name()).collect();
    let mut times = vec![Vec::new(); names.len()];
    for round in 0..WARM_UP + bench.samples {
        for (name, times) in names.iter().zip(&mut times) {
            let seconds = time_process(name, &bench.selector, &bench.device, caches.path())?;
            if round >= WARM_UP {
                times.push(seconds);
            }
        }
    }
    let results: Vec<_> =
        names.into_iter().zip(times.into_iter().map(Summary::from_seconds)).collect();
    let subject = Subject { bench: "cold start", size: "", bytes: None, rule: Rule::AtMost(GOAL) };
    bench.report.compare(subject, &results)
}

/// Returns the seconds from the start of a process until it reports a correct result.
fn time_process(peer: &str, selector: &str, device: &str, caches: &Path) -> Result<f64> {
    let program = std::env::current_exe()?;
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(["--device", selector, "--cold-child", peer, "--cold-device", device])
        .env("SCRY_CACHE_DIR", caches)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut answer = String::new();
    let pipe = child.stdout.take().context("the child's output is a pipe")?;
    BufReader::new(pipe).read_line(&mut answer)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = child.wait()?;
    ensure!(answer.trim() == DONE && status.success(), "the process with {peer} failed: {status}");
    Ok(seconds)
}

/// Computes and reports a result, in the child process.
pub fn child(peer: &str, selector: &str, device: &str) -> Result<()> {
    match peer {
        "scry-gpu" => first_result(Scry::new(Device::open(selector)?)),
        "wgpu-30" => first_result(Wgpu::open(device)?),
        #[cfg(feature = "scry-gpu-01")]
        "scry-gpu-0.1" => first_result(Scry01::open(device)?),
        other => bail!("`{other}` is not a peer of this build"),
    }
}

fn first_result(mut peer: impl Peer) -> Result<()> {
    let input = data::random(13, LEN);
    let (kernel, buffer) = (peer.compile(INCREMENT)?, peer.upload(&input)?);
    let plan = peer.plan(&[increment(kernel, buffer, 0, LEN)], true)?;
    peer.run(plan.context("every library can launch a kernel over a whole buffer")?)?;
    data::check(peer.name(), &peer.read(buffer)?, |i| input[i] + 1.0)?;
    let mut out = std::io::stdout();
    writeln!(out, "{DONE}")?;
    Ok(out.flush()?)
}
