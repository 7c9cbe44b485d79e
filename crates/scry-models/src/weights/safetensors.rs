//! safetensors: the size of a header, the header in JSON, and the data of tensors.

use std::path::Path;

use safetensors::tensor::Metadata as Parsed;
use scry_tensor::Shape;

use super::metadata::{Metadata, Value};
use super::source::Source;
use super::stored_type::StoredType;
use super::tensor_info::{Header, TensorInfo};
use crate::error::{Error, ErrorKind, Result};

/// Bytes of the number before the header.
const PREFIX: u64 = 8;
/// The largest header that the format permits, in bytes.
const MAX_HEADER_BYTES: u64 = 100_000_000;

const DAMAGED: &str = "the file is damaged: download it again";

/// Returns whether the first bytes of a file are those of this format.
pub(super) fn is_plausible(start: &[u8]) -> bool {
    start.get(PREFIX as usize).is_none_or(|byte| *byte == b'{')
}

/// Reads the header.
pub(super) fn read_header(call: &'static str, path: &Path, source: &Source) -> Result<Header> {
    let error = |offset: u64, problem: String, help: &str| {
        Error::new(call, ErrorKind::Format, problem, help).in_file(path).at(offset)
    };
    let io = |error| Error::io(call, path, error);
    let len = source.len();
    if len < PREFIX {
        return Err(error(0, format!("the file has {len} bytes, but needs 8"), DAMAGED));
    }
    let prefix = source.read(0, PREFIX as usize).map_err(io)?;
    let size = prefix.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if size > MAX_HEADER_BYTES.min(len - PREFIX) {
        let (problem, help) = match size > MAX_HEADER_BYTES {
            true => (format!("a header of {size} bytes exceeds {MAX_HEADER_BYTES}"), DAMAGED),
            false => (
                format!("the header has {size} bytes, but {} follow", len - PREFIX),
                "the file is truncated: download it again",
            ),
        };
        return Err(error(0, problem, help));
    }
    let text = source.read(PREFIX, size as usize).map_err(io)?;
    let parsed: Parsed = serde_json::from_slice(&text).map_err(|problem| {
        let at = PREFIX + position(&text, problem.line(), problem.column());
        error(at, format!("the header is not valid: {problem}"), DAMAGED)
    })?;
    let (start, needed) = (PREFIX + size, parsed.data_len() as u64);
    if needed > len - start {
        let problem = format!("tensors have {needed} bytes, but {} follow", len - start);
        return Err(error(start, problem, "the file is truncated: download it again"));
    }
    if needed < len - start {
        let problem = format!("{} bytes follow the last tensor", len - start - needed);
        return Err(error(start + needed, problem, DAMAGED));
    }
    let tensors = tensors(&parsed, start, |name, problem| {
        error(PREFIX, problem, "convert the tensor to another type").of_tensor(name)
    })?;
    let mut metadata = Metadata::new(path);
    let mut pairs: Vec<_> = parsed.metadata().iter().flatten().collect();
    pairs.sort();
    for (key, value) in pairs {
        metadata.insert(key.clone(), Value::String(value.clone()));
    }
    Ok(Header { tensors, metadata })
}

/// Returns the tensors, in the order of their data. `start` is the offset of the data.
fn tensors(
    parsed: &Parsed,
    start: u64,
    error: impl Fn(&str, String) -> Error,
) -> Result<Vec<TensorInfo>> {
    let tensor = |name: String| {
        let Some(info) = parsed.info(&name) else {
            return Err(error(&name, "the header does not describe it".to_owned()));
        };
        let ty = format!("{:?}", info.dtype);
        let stored = StoredType::of_safetensors(&ty)
            .ok_or_else(|| error(&name, format!("the type {ty} is not supported")))?;
        let (from, end) = info.data_offsets;
        Ok(TensorInfo {
            shape: Shape::from(info.shape.clone()),
            stored,
            file: 0,
            offset: start + from as u64,
            bytes: (end - from) as u64,
            name,
        })
    };
    parsed.offset_keys().into_iter().map(tensor).collect()
}

/// Returns the offset of a line and column, both counted from 1.
fn position(text: &[u8], line: usize, column: usize) -> u64 {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(text.len()) as u64
}
