//! Tokens per second on a processor, beside llama.cpp with the same file and threads.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use scry_bench::table::Goal;
use scry_bench::torch::Torch;
use scry_models::{Decoder, Device, Sampling};

use crate::{Bench, gguf, has_package, median};

/// Tokens of the prompt, and steps that are timed after it.
const PROMPT: usize = 128;
const STEPS: usize = 32;

/// The clock's time and the processor's of one measurement, in seconds.
type Times = [f64; 2];

/// Compares prefill and decode with llama.cpp's. Prints why, if it cannot.
pub fn run(bench: &mut Bench) -> Result<()> {
    let python = bench.arguments.llama_cpp.clone();
    if !has_package(&python, "xllamacpp") {
        println!("skipped: llama_cpp, because {python} has no package xllamacpp");
        return Ok(());
    }
    let file = file(bench)?;
    let threads = std::thread::available_parallelism()?;
    let settings = format!("FILE = {file:?}\nTHREADS = {threads}\n");
    let mut peer = Torch::start(&python, &(settings + include_str!("llama_cpp.py")))?;
    println!("peer: {}", peer.name);
    let gpu = Device::open("cpu")?;
    let mut model = Decoder::options().capacity(2048).load(&file, &gpu)?;
    let vocabulary = model.tokenizer().vocab_size();
    let prompt: Vec<u32> = (0..PROMPT).map(|at| ((at * 7919 + 13) % vocabulary) as u32).collect();
    // Ours and theirs, of prompts and of steps.
    let mut times: [[Vec<Times>; 2]; 2] = Default::default();
    for sample in 0..=bench.arguments.samples {
        let found = [
            [prefill(&mut model, &prompt)?, theirs(&mut peer, "prompt", &[PROMPT])?],
            [decode(&mut model, &prompt)?, theirs(&mut peer, "steps", &[PROMPT, STEPS])?],
        ];
        // The first ones compile plans.
        if sample > 0 {
            for (times, found) in times.iter_mut().zip(found) {
                times.iter_mut().zip(found).for_each(|(times, found)| times.push(found));
            }
        }
    }
    for ((name, count, goal), [ours, theirs]) in
        [("prefill", PROMPT, 0.4), ("decode", STEPS, 0.5)].into_iter().zip(times)
    {
        for (which, clock) in ["clock", "processor"].into_iter().enumerate() {
            let each =
                |times: &[Times]| median(times.iter().map(|it| it[which] / count as f64).collect());
            let (ours, theirs) = (each(&ours), each(&theirs));
            let title = format!("{name}, {threads} threads, {clock}");
            // Processor time shows the work, whatever else runs.
            let goal = if which == 0 { Goal::AtLeast(goal) } else { Goal::None };
            let rate = format!("{:.0} tokens/s", 1.0 / ours);
            bench.row(&title, rate, ours, "llama.cpp", theirs, goal);
        }
    }
    Ok(())
}

/// Returns the file of the model: that of the arguments, or one of random weights.
fn file(bench: &Bench) -> Result<PathBuf> {
    if let Some(file) = &bench.arguments.gguf {
        return Ok(file.clone());
    }
    let file = bench.folder.join("decoder.gguf");
    gguf::write(&file, bench.arguments.layers)?;
    Ok(Path::new(&file).to_owned())
}

fn theirs(peer: &mut Torch, function: &str, numbers: &[usize]) -> Result<Times> {
    Ok([peer.measure(function, numbers)?, peer.measure("processor_of_last", &[])?])
}

fn prefill(model: &mut Decoder, prompt: &[u32]) -> Result<Times> {
    model.clear()?;
    measure(|| Ok(drop(model.logits(prompt)?)))
}

/// Returns the times of steps: the difference of generations of different lengths.
fn decode(model: &mut Decoder, prompt: &[u32]) -> Result<Times> {
    let mut times = |steps: usize| -> Result<Times> {
        model.clear()?;
        measure(|| {
            let options = Sampling::new().max_tokens(steps).ignore_eos(true);
            let mut generation = model.complete_tokens(prompt, &options)?;
            generation.by_ref().try_for_each(|piece| piece.map(drop))?;
            anyhow::ensure!(generation.tokens() == steps, "generation ended early");
            Ok(())
        })
    };
    let (long, short) = (times(STEPS + 1)?, times(1)?);
    Ok([0, 1].map(|which| long[which] - short[which]))
}

fn measure(action: impl FnOnce() -> Result<()>) -> Result<Times> {
    let processor = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::try_from(time).context("a time after the start")
    };
    let (start, before) = (Instant::now(), processor()?);
    action()?;
    Ok([start.elapsed().as_secs_f64(), (processor()? - before).as_secs_f64()])
}
