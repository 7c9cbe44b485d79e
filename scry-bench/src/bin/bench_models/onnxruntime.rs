//! Vectors of one text on a processor, beside onnxruntime with as many threads.

use std::time::Instant;

use anyhow::Result;
use scry_bench::table::Goal;
use scry_bench::torch::Torch;
use scry_models::{DType, Device};

use crate::encoder::{check, tokens};
use crate::{Bench, has_package, load, median};

/// Calls of one measurement.
const CALLS: usize = 20;

/// Compares texts of few and of many tokens, in `f32`. Prints why, if it cannot.
pub fn run(bench: &mut Bench) -> Result<()> {
    let python = bench.arguments.python.clone();
    if python == "none" || !has_package(&python, "onnxruntime") {
        println!("skipped: onnxruntime, because {python} has no package onnxruntime");
        return Ok(());
    }
    let threads = std::thread::available_parallelism()?;
    let settings = format!("FOLDER = {:?}\nTHREADS = {threads}\n", bench.folder);
    let mut peer = Torch::start(&python, &(settings + include_str!("onnxruntime.py")))?;
    println!("peer: {}", peer.name);
    let encoder = load(&bench.folder, &Device::open("cpu")?, DType::F32)?;
    for (length, goal) in [(12, Goal::AtLeast(0.5)), (122, Goal::None)] {
        let texts = tokens(1, length);
        peer.measure("vector", &[length])?;
        check(bench, [1, length], &encoder.embed_tokens(&texts)?)?;
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..bench.arguments.samples {
            let start = Instant::now();
            for _ in 0..CALLS {
                encoder.embed_tokens(&texts)?.to_vec::<f32>()?;
            }
            times[0].push(start.elapsed().as_secs_f64() / CALLS as f64);
            times[1].push(peer.measure("embed", &[CALLS, length])?);
        }
        let [ours, theirs] = times.map(median);
        let name = format!("MiniLM 1x{length} f32, {threads} threads");
        let rate = format!("{:.0} texts/s", 1.0 / ours);
        bench.row(&name, rate, ours, "onnxruntime", theirs, goal);
    }
    Ok(())
}
