//! `scry model generate`: text of a language model.

use std::time::Instant;

use scry_models::{Decoder, Sampling};
use serde_json::json;

use super::failure;
use crate::args;
use crate::commands::open;
use crate::report::{Failure, Report, note, print_bytes};

/// Prints the reply to a prompt while it is generated, and the speed.
pub fn run(args: &args::ModelGenerate, as_json: bool) -> Result<Report, Failure> {
    let device = open(args.device.device.as_deref())?;
    let mut options = Decoder::options();
    if let Some(capacity) = args.context {
        options = options.capacity(capacity);
    }
    let mut model = options.load(&args.file, &device).map_err(failure)?;
    let start = Instant::now();
    let mut generation = match args.raw {
        true => model.complete(&args.prompt, &sampling(args)),
        false => model.generate_with(&args.prompt, &sampling(args)),
    }
    .map_err(failure)?;
    let mut text = String::new();
    let mut first = None;
    for piece in generation.by_ref() {
        let piece = piece.map_err(failure)?;
        first.get_or_insert_with(|| start.elapsed());
        if !as_json {
            print_bytes(piece.as_bytes())?;
        }
        text.push_str(&piece);
    }
    let seconds = start.elapsed().as_secs_f64();
    let first = first.map_or(seconds, |first| first.as_secs_f64());
    let (prompt, tokens) = (generation.prompt_tokens(), generation.tokens());
    let reason = generation.stop_reason().map(|reason| format!("{reason:?}"));
    let rate = tokens.saturating_sub(1) as f64 / (seconds - first).max(1e-9);
    note(&format!(
        "\nprompt: {prompt} tokens, time to first text {first:.3} s; generated: {tokens} tokens, \
         {rate:.1} tokens/s, on {}",
        device.name()
    ));
    let json = json!({
        "text": text,
        "prompt_tokens": prompt,
        "tokens": tokens,
        "seconds_to_first_text": first,
        "tokens_per_second": rate,
        "stop_reason": reason,
    });
    // The text is printed already.
    Ok(Report::new("\n".to_owned(), json))
}

fn sampling(args: &args::ModelGenerate) -> Sampling {
    let options = Sampling::new()
        .temperature(args.temperature)
        .top_k(args.top_k)
        .top_p(args.top_p)
        .min_p(args.min_p)
        .repetition_penalty(args.repetition_penalty)
        .seed(args.seed)
        .max_tokens(args.max_tokens);
    args.stop.iter().fold(options, |options, stop| options.stop(stop))
}
