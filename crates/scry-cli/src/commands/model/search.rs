//! `scry model search`: lines of a file by meaning.

use std::time::Instant;

use scry_models::Encoder;
use serde_json::json;

use super::failure;
use crate::args;
use crate::commands::open;
use crate::report::{Failure, Report, note};

/// Prints the lines that are the most similar to a query.
pub fn run(args: &args::ModelSearch) -> Result<Report, Failure> {
    let text =
        std::fs::read_to_string(&args.file).map_err(|error| Failure::file(&args.file, error))?;
    let lines: Vec<(usize, &str)> =
        (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return Err(Failure::file(&args.file, "has no text to search: all lines are empty"));
    }
    let device = open(args.device.device.as_deref())?;
    let encoder = Encoder::load(&args.model, &device).map_err(failure)?;
    let start = Instant::now();
    let mut texts = vec![args.query.as_str()];
    texts.extend(lines.iter().map(|(_, line)| *line));
    let vectors = encoder.embed(&texts).map_err(failure)?;
    let seconds = start.elapsed().as_secs_f64();
    let cosine = |vector: &Vec<f32>| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let lengths = dot(vector, vector) * dot(&vectors[0], &vectors[0]);
        dot(vector, &vectors[0]) / lengths.sqrt().max(f32::MIN_POSITIVE)
    };
    let mut found: Vec<(f32, usize, &str)> = lines
        .iter()
        .zip(&vectors[1..])
        .map(|((number, line), vector)| (cosine(vector), *number, *line))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.truncate(args.count);
    note(&format!("{} lines in {seconds:.2} s on {}", lines.len(), device.name()));
    let line = |(similarity, number, line): &(f32, usize, &str)| {
        format!("{similarity:6.3}  {}:{number}: {line}\n", args.file.display())
    };
    let results: Vec<_> = found
        .iter()
        .map(|(similarity, number, text)| {
            json!({ "similarity": similarity, "line": number, "text": text })
        })
        .collect();
    let json = json!({ "lines": lines.len(), "seconds": seconds, "results": results });
    Ok(Report::new(found.iter().map(line).collect(), json))
}
