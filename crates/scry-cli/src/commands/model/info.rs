//! `scry model info`: what the files of a model have.

use std::fmt::Write;

use scry_models::{Error, ModelInfo, Tokenizer, TypeSummary};
use serde_json::{Value, json};

use crate::args;
use crate::commands::{format_bytes, table};
use crate::report::{Failure, Report, printable};

/// Describes a file or a folder.
pub fn run(args: &args::ModelInfo) -> Result<Report, Failure> {
    let info = ModelInfo::open(&args.file).map_err(|error| Failure::Runtime(error.to_string()))?;
    Ok(Report::new(text(&info), to_json(&info)))
}

fn text(info: &ModelInfo) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:13} {value}");
    };
    for file in info.weights.files() {
        line("file", file.display().to_string());
    }
    line("format", info.weights.format().name().to_owned());
    line(
        "architecture",
        info.architecture.as_deref().map(one_line).unwrap_or_else(|| "not stated".to_owned()),
    );
    if let Some(name) = &info.name {
        line("name", one_line(name));
    }
    line("parameters", format!("{}, {}", info.parameters, format_bytes(info.bytes)));
    line("tokenizer", info.tokenizer.as_ref().map_or("none found".to_owned(), tokenizer));
    let heads = ["type", "tensors", "parameters", "size"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        [heads].into_iter().chain(info.types.iter().map(type_row)).collect();
    text.push('\n');
    text.push_str(&table(&rows, ""));
    if !info.weights.metadata().is_empty() {
        let pairs = info.weights.metadata().iter();
        let rows: Vec<_> =
            pairs.map(|(key, value)| vec![key.to_owned(), shortened(&value.to_string())]).collect();
        text.push_str("\nmetadata\n");
        text.push_str(&table(&rows, "  "));
    }
    let tensors = info.weights.tensors();
    let _ = writeln!(text, "\ntensors ({})", tensors.len());
    let rows: Vec<Vec<String>> = tensors
        .map(|it| {
            let ty = it.stored_type().to_string();
            vec![one_line(it.name()), it.shape().to_string(), ty, format_bytes(it.byte_size())]
        })
        .collect();
    text.push_str(&table(&rows, "  "));
    text
}

fn type_row(summary: &TypeSummary) -> Vec<String> {
    vec![
        summary.stored_type.to_string(),
        summary.tensors.to_string(),
        summary.parameters.to_string(),
        format_bytes(summary.bytes),
    ]
}

/// Returns the beginning of a long text.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST - 1).chain(['…']).collect()
}

fn tokenizer(tokenizer: &Result<Tokenizer, Error>) -> String {
    let tokenizer = match tokenizer {
        Ok(tokenizer) => tokenizer,
        Err(error) => return format!("not supported: {error}"),
    };
    let mut text = format!("{}, {} tokens", tokenizer.kind(), tokenizer.vocab_size());
    for (name, token) in special(tokenizer) {
        let _ = write!(text, ", {name} `{}`", one_line(&token));
    }
    if tokenizer.chat_template().is_some() {
        text.push_str(", chat template");
    }
    text
}

/// Makes text of a file safe to print, on one line.
fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Returns the special tokens, by name.
fn special(tokenizer: &Tokenizer) -> Vec<(&'static str, String)> {
    let ids = [
        ("bos", tokenizer.bos_id()),
        ("eos", tokenizer.eos_id()),
        ("unk", tokenizer.unk_id()),
        ("pad", tokenizer.pad_id()),
    ];
    ids.into_iter().filter_map(|(name, id)| Some((name, tokenizer.id_to_token(id?)?))).collect()
}

fn to_json(info: &ModelInfo) -> Value {
    let files: Vec<_> = info.weights.files().map(|file| file.display().to_string()).collect();
    let types = info.types.iter().map(|it| {
        json!({
            "type": it.stored_type.name(),
            "tensors": it.tensors,
            "parameters": it.parameters,
            "bytes": it.bytes,
        })
    });
    let tensors = info.weights.tensors().map(|it| {
        json!({
            "name": it.name(),
            "shape": &**it.shape(),
            "type": it.stored_type().name(),
            "offset": it.offset(),
            "bytes": it.byte_size(),
        })
    });
    let metadata = info.weights.metadata().iter();
    let metadata: serde_json::Map<String, Value> =
        metadata.map(|(key, value)| (key.to_owned(), json!(value.to_string()))).collect();
    let tokenizer = info.tokenizer.as_ref().map(|tokenizer| match tokenizer {
        Ok(tokenizer) => json!({
            "kind": tokenizer.kind(),
            "tokens": tokenizer.vocab_size(),
            "special": special(tokenizer).into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "has_chat_template": tokenizer.chat_template().is_some(),
        }),
        Err(error) => json!({ "error": error.to_string() }),
    });
    json!({
        "files": files,
        "format": info.weights.format().name(),
        "architecture": info.architecture,
        "name": info.name,
        "parameters": info.parameters,
        "bytes": info.bytes,
        "types": types.collect::<Vec<_>>(),
        "tokenizer": tokenizer,
        "metadata": metadata,
        "tensors": tensors.collect::<Vec<_>>(),
    })
}
