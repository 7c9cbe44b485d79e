//! Compares `dispatch` of a cached source with `run` of a compiled kernel.

use std::time::Instant;

use anyhow::Result;
use scry_gpu::Device;

use super::Bench;
use crate::report::{Goal, Rule, Subject};
use crate::stats::Summary;
use scry_bench::data;
use scry_bench::kernels::INCREMENT;

const LEN: usize = 64;
const GOAL: f64 = 1.1;
/// Calls in one measurement.
const CALLS: usize = 20;

pub fn run(bench: &mut Bench) -> Result<()> {
    let gpu = Device::open(&bench.selector)?;
    let input = data::random(10, LEN);
    let (buffer, kernel) = (gpu.upload(&input)?, gpu.compile(INCREMENT)?);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..bench.samples {
        for (from_source, times) in times.iter_mut().enumerate() {
            let start = Instant::now();
            for _ in 0..CALLS {
                match from_source {
                    0 => gpu.run(&kernel, &[&buffer], LEN)?,
                    _ => gpu.dispatch(INCREMENT, &[&buffer], LEN)?,
                }
                gpu.wait()?;
            }
            times.push(start.elapsed().as_secs_f64() / CALLS as f64);
        }
    }
    let calls = (2 * CALLS * bench.samples) as f32;
    data::check("dispatch", &buffer.download()?, |i| input[i] + calls)?;
    let [Some(run), Some(dispatch)] = times.map(Summary::from_seconds) else {
        return Ok(());
    };
    for (name, summary) in [("run", run), ("dispatch", dispatch)] {
        let subject = Subject { bench: name, size: "64", bytes: None, rule: Rule::Report };
        bench.report.row(&format!("{name} 64"), subject, "scry-gpu", summary)?;
    }
    let ratio = dispatch.median / run.median;
    bench.report.check_goal("dispatch 64: time / run's", ratio, Goal::AtMost(GOAL))
}
