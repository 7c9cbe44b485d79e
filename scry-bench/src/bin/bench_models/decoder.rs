//! Tokens per second of a model of SmolLM2's shape.

use std::time::Instant;

use anyhow::{Result, ensure};
use scry_bench::table::Goal;
use scry_models::{Decoder, Sampling};

use crate::{Bench, gguf, median};

/// Tokens that are generated after the prompt, of which a quarter is not timed.
const STEPS: usize = 256;

/// Compares generation with transformers' in bf16, eager and compiled.
pub fn run(bench: &mut Bench) -> Result<()> {
    let path = bench.folder.join("decoder.gguf");
    gguf::write(&path, bench.arguments.layers)?;
    let mut model = Decoder::options().capacity(2048).load(&path, &bench.gpu)?;
    bench.explain("step", &model.step_plan(&Sampling::new(), 100)?.explain()?);
    for context in [128usize, 1024] {
        let prompt: Vec<u32> =
            (0..context).map(|at| ((at * 7919 + 13) % gguf::VOCABULARY) as u32).collect();
        for (name, options) in [
            ("greedy", Sampling::new()),
            ("top-p", Sampling::new().temperature(0.8).top_p(0.95).seed(7)),
        ] {
            let (mut rates, mut prefills) = (Vec::new(), Vec::new());
            for sample in 0..=bench.arguments.samples {
                // The difference of long and short generations, as for the peer.
                let mut seconds = |steps: usize| -> Result<[f64; 2]> {
                    model.clear()?;
                    bench.gpu.wait()?;
                    let start = Instant::now();
                    let options = options.clone().max_tokens(steps);
                    let mut generation = model.complete_tokens(&prompt, &options)?;
                    generation.next().transpose()?;
                    let first = start.elapsed().as_secs_f64();
                    generation.by_ref().try_for_each(|piece| piece.map(drop))?;
                    let tokens = generation.tokens();
                    ensure!(tokens == steps, "generation ended after {tokens} tokens");
                    Ok([start.elapsed().as_secs_f64(), first])
                };
                let ([long, _], [short, first]) = (seconds(STEPS)?, seconds(STEPS / 4)?);
                if sample > 0 {
                    rates.push((long - short) / (STEPS - STEPS / 4) as f64);
                    prefills.push(first);
                }
            }
            let (step, prefill) = (median(rates), median(prefills));
            let rate = format!("{:.0} tokens/s", 1.0 / step);
            println!("prompt of {context}: {:.2} ms until the first text", prefill * 1e3);
            let title = format!("decode after {context}, {name}");
            let functions: &[(&str, &str, f64)] = match (bench.arguments.quick, name) {
                (_, "top-p") => &[],
                (true, _) => &[("decoder_eager", "eager", 3.0)],
                (false, _) => &[("decoder_compiled", "compiled", 3.0)],
            };
            if functions.is_empty() || bench.torch.is_none() {
                bench.row(&title, rate.clone(), step, "", f64::NAN, Goal::None);
            }
            for (function, peer, goal) in functions {
                let theirs = generate(bench, function, context)?;
                bench.row(&title, rate.clone(), step, peer, theirs, Goal::AtLeast(*goal));
            }
        }
    }
    Ok(())
}

/// Returns transformers' seconds for a token: the difference of long and short generations.
fn generate(bench: &mut Bench, function: &str, context: usize) -> Result<f64> {
    let samples = bench.arguments.samples.min(3);
    let Some(torch) = &mut bench.torch else { return Ok(f64::NAN) };
    let mut seconds = |steps: usize| -> Result<f64> {
        let times = (0..samples).map(|_| torch.measure(function, &[1, context, steps]));
        Ok(median(times.collect::<Result<Vec<_>>>()?))
    };
    let (long, short) = (seconds(STEPS)?, seconds(STEPS / 4)?);
    Ok((long - short) / (STEPS - STEPS / 4) as f64)
}
