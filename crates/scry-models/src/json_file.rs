//! JSON files beside the weights of a model.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// The largest number that a size may have, so that products of two fit.
pub(crate) const MAX_SIZE: usize = 1 << 24;

/// The maximum size of a configuration file in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The help where a file contradicts the weights, or itself.
const OTHER: &str = "use the config.json that belongs to the weights";

/// A JSON file, for errors that name it.
pub(crate) struct JsonFile {
    call: &'static str,
    path: PathBuf,
    pub(crate) json: Value,
}

impl JsonFile {
    /// Reads a file; `None` if there is none.
    pub(crate) fn find(call: &'static str, path: PathBuf) -> Result<Option<Self>> {
        let found = match std::fs::metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(call, &path, error)),
        };
        let error = |problem: String, help: &str| {
            Error::new(call, ErrorKind::Format, problem, help).in_file(&path)
        };
        if !found.is_file() || found.len() > MAX_BYTES {
            let problem = format!("is not a regular file of at most {MAX_BYTES} bytes");
            return Err(error(problem, "use the config.json of a model"));
        }
        let text = std::fs::read_to_string(&path).map_err(|it| Error::io(call, &path, it))?;
        let json = serde_json::from_str(&text)
            .map_err(|it| error(format!("is not valid JSON: {it}"), "download the file again"))?;
        Ok(Some(Self { call, path, json }))
    }

    /// Reads a file.
    pub(crate) fn open(call: &'static str, path: PathBuf) -> Result<Self> {
        let missing = |path: &Path| {
            let help = "check the path: a model is a local folder with config.json, \
                        tokenizer.json and safetensors; nothing is downloaded";
            Error::new(call, ErrorKind::Io, "there is no such file", help).in_file(path)
        };
        Self::find(call, path.clone())?.ok_or_else(|| missing(&path))
    }

    /// Returns an error of the file.
    pub(crate) fn error(&self, problem: impl Into<String>, help: &str) -> Error {
        Error::new(self.call, ErrorKind::Format, problem, help).in_file(&self.path)
    }

    /// Returns a size, from 1 to 2^24, if there is one.
    pub(crate) fn find_size(&self, key: &str) -> Result<Option<usize>> {
        let value = &self.json[key];
        if value.is_null() {
            return Ok(None);
        }
        let size = value.as_u64().filter(|size| (1..=MAX_SIZE as u64).contains(size));
        match size {
            Some(size) => Ok(Some(size as usize)),
            None => {
                let problem = format!("`{key}` is {value}, not an integer from 1 to {MAX_SIZE}");
                Err(self.error(problem, OTHER))
            }
        }
    }

    /// Returns a size that must be there.
    pub(crate) fn size(&self, key: &str) -> Result<usize> {
        self.find_size(key)?.ok_or_else(|| self.error(format!("`{key}` is missing"), OTHER))
    }

    /// Returns a number of a part of the file, if there is one.
    pub(crate) fn find_number(&self, part: &Value, key: &str) -> Result<Option<f64>> {
        match &part[key] {
            Value::Null => Ok(None),
            value => value
                .as_f64()
                .map(Some)
                .ok_or_else(|| self.error(format!("`{key}` is {value}, not a number"), OTHER)),
        }
    }

    /// Returns a text, if there is one.
    pub(crate) fn find_text(&self, key: &str) -> Result<Option<&str>> {
        match &self.json[key] {
            Value::Null => Ok(None),
            value => value
                .as_str()
                .map(Some)
                .ok_or_else(|| self.error(format!("`{key}` is {value}, not a string"), OTHER)),
        }
    }
}
