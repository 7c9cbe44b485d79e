//! Opening weights: one file, or a folder with an index of several.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::metadata::Metadata;
use super::source::Source;
use super::tensor_info::{FileFormat, Header, TensorInfo};
use super::{OpenFile, Weights};
use super::{gguf, safetensors};
use crate::error::{Error, ErrorKind, Result};

/// The file of a folder that lists tensors with their files.
const INDEX: &str = "model.safetensors.index.json";
/// The file of a folder that has all tensors.
const SINGLE: &str = "model.safetensors";
/// The largest index, in bytes.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Opens a file, a folder, or the index of a folder.
pub(super) fn open(
    call: &'static str,
    path: &Path,
    source: impl Fn(&Path) -> io::Result<Source>,
) -> Result<Weights> {
    let path = if path.is_dir() { file_of(call, path)? } else { path.to_owned() };
    let is_index = path.extension().is_some_and(|extension| extension == "json");
    if !is_index {
        let source = source(&path).map_err(|error| Error::io(call, &path, error))?;
        return single(call, path, source);
    }
    let mut weights: Option<Weights> = None;
    let index = read_index(call, &path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    for (file, names) in &index {
        let part = folder.join(file);
        let source = source(&part).map_err(|error| Error::io(call, &part, error))?;
        let next = single(call, part, source)?;
        if let Some(name) = names.iter().find(|name| next.info(name).is_none()) {
            let problem = format!("the index states that {file} has the tensor, but it does not");
            let help = "download the files again: index and weights are of different models";
            return Err(Error::new(call, ErrorKind::Format, problem, help)
                .in_file(&path)
                .of_tensor(name));
        }
        weights = Some(match weights {
            None => next,
            Some(weights) => weights.joined(call, next)?,
        });
    }
    weights.ok_or_else(|| {
        let problem = "the index lists no tensors";
        Error::new(call, ErrorKind::Format, problem, "download the file again").in_file(&path)
    })
}

/// Returns the file of a folder that has its weights, or their index.
fn file_of(call: &'static str, folder: &Path) -> Result<PathBuf> {
    for name in [INDEX, SINGLE] {
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
    }
    let io = |error| Error::io(call, folder, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("safetensors" | "gguf")) {
            found.push(path);
        }
    }
    found.sort();
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => {
            let names: Vec<_> =
                found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
            let problem = match names.is_empty() {
                true => "the folder contains no .safetensors or .gguf file".to_owned(),
                false => {
                    format!("the folder contains several weight files: {}", names.join(", "))
                }
            };
            let help = format!(
                "pass the path of a file, or a folder with {SINGLE}, {INDEX} or exactly one weight \
                 file"
            );
            Err(Error::new(call, ErrorKind::Keys, problem, help).in_file(folder))
        }
    }
}

/// Reads an index: files, each with the names of its tensors.
fn read_index(call: &'static str, path: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let io = |error| Error::io(call, path, error);
    let error = |problem: String| {
        let help = "the file must contain an object `weight_map` that maps tensor names to file \
                    names";
        Error::new(call, ErrorKind::Format, problem, help).in_file(path)
    };
    let size = fs::metadata(path).map_err(io)?.len();
    if size > MAX_INDEX_BYTES {
        return Err(error(format!("an index of {size} bytes exceeds {MAX_INDEX_BYTES}")));
    }
    let text = fs::read(path).map_err(io)?;
    let index: Json = serde_json::from_slice(&text)
        .map_err(|problem| error(format!("the index is not valid: {problem}")))?;
    let map = index["weight_map"].as_object();
    let map = map.ok_or_else(|| error("the index has no `weight_map`".to_owned()))?;
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (tensor, file) in map {
        let name = file.as_str().unwrap_or_default();
        // A file of another folder could be any file of the machine.
        if Path::new(name).file_name().is_none_or(|it| it != name) {
            let problem = format!("{file} is not the name of a file in the folder");
            return Err(error(problem).of_tensor(tensor));
        }
        files.entry(name.to_owned()).or_default().push(tensor.clone());
    }
    Ok(files)
}

/// Reads the header of a file.
pub(super) fn single(call: &'static str, path: PathBuf, source: Source) -> Result<Weights> {
    let start = source
        .read(0, source.len().min(9) as usize)
        .map_err(|error| Error::io(call, &path, error))?;
    let (format, header) = if start.starts_with(&gguf::MAGIC) {
        (FileFormat::Gguf, gguf::read_header(call, &path, &source)?)
    } else if safetensors::is_plausible(&start) {
        (FileFormat::Safetensors, safetensors::read_header(call, &path, &source)?)
    } else {
        let (problem, help) = match start.starts_with(b"PK") {
            true => ("the file is a PyTorch archive", "save the model as safetensors"),
            false => (
                "the file is neither GGUF nor safetensors",
                "convert the model to one of these formats",
            ),
        };
        return Err(Error::new(call, ErrorKind::Format, problem, help).in_file(&path).at(0));
    };
    drop(start);
    let Header { tensors, metadata } = header;
    let file = OpenFile { path, source };
    Weights::assemble(call, format, vec![file], tensors, metadata)
}

impl Weights {
    /// Combines files with their tensors, whose names must differ.
    fn assemble(
        call: &'static str,
        format: FileFormat,
        files: Vec<OpenFile>,
        tensors: Vec<TensorInfo>,
        metadata: Metadata,
    ) -> Result<Self> {
        let mut positions = HashMap::with_capacity(tensors.len());
        for (position, tensor) in tensors.iter().enumerate() {
            if positions.insert(tensor.name.clone(), position).is_some() {
                let problem = "there are two tensors of this name";
                let help = "the files are damaged: download them again";
                return Err(Error::new(call, ErrorKind::Format, problem, help)
                    .in_file(&files[tensor.file].path)
                    .of_tensor(&tensor.name)
                    .at(tensor.offset));
            }
        }
        Ok(Self { format, files, tensors, positions, metadata })
    }

    /// Appends the files and tensors of other weights. The metadata of the first file remains.
    fn joined(mut self, call: &'static str, mut other: Self) -> Result<Self> {
        for tensor in &mut other.tensors {
            tensor.file += self.files.len();
        }
        self.files.append(&mut other.files);
        self.tensors.append(&mut other.tensors);
        Self::assemble(call, self.format, self.files, self.tensors, self.metadata)
    }
}
