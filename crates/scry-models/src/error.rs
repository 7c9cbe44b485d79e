//! Errors: what was called, the file, the tensor, the offset, what is wrong, and what to do.

use std::fmt;
use std::path::{Path, PathBuf};

use scry_gpu::GpuError;

/// The result of most calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be read.
    Io,
    /// A file is not of the format that it claims, is truncated, or contradicts itself.
    Format,
    /// A tensor or a metadata key is missing, or the file has tensors that the model does not use.
    Keys,
    /// A tensor has another shape than the model needs.
    Shape,
    /// A tensor or a metadata value has a type that is not supported here.
    DType,
    /// A value is out of range for the requested type.
    Value,
    /// Text cannot be tokenised, or token ids cannot be decoded.
    Tokenizer,
    /// A chat template failed.
    Template,
    /// A prompt has more tokens than the context of a model holds.
    Context,
    /// An operation on tensors failed: [`Error::tensor_error`] has the error.
    Tensor,
    /// The device, its driver or a kernel failed: [`Error::gpu`] has the error.
    Gpu,
}

/// The error of a failed call: names the function, the file, the tensor, the offset in bytes, the
/// problem with the values, and what to do. `Debug` prints the same text as `Display`.
///
/// ```
/// use scry_models::{ErrorKind, Weights};
///
/// let error = Weights::from_bytes(*b"GGUF\x03\0\0\0").unwrap_err();
/// assert_eq!((error.kind(), error.offset()), (ErrorKind::Format, Some(8)));
/// assert_eq!(error.function(), "Weights::from_bytes");
/// assert!(error.to_string().starts_with("Weights::from_bytes (memory, offset 8): "));
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    call: &'static str,
    path: Option<PathBuf>,
    tensor: Option<String>,
    offset: Option<u64>,
    problem: String,
    help: String,
    source: Option<Source>,
    missing: Vec<String>,
    unexpected: Vec<String>,
}

enum Source {
    Tensor(scry_tensor::Error),
    Gpu(GpuError),
    Io(std::io::Error),
}

impl Error {
    /// Returns an error of a public function.
    pub(crate) fn new(
        call: &'static str,
        kind: ErrorKind,
        problem: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            call,
            path: None,
            tensor: None,
            offset: None,
            problem: problem.into(),
            help: help.into(),
            source: None,
            missing: Vec::new(),
            unexpected: Vec::new(),
        }))
    }

    /// Returns the error of a file that cannot be read.
    pub(crate) fn io(call: &'static str, path: &Path, error: std::io::Error) -> Self {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "check the path",
            std::io::ErrorKind::PermissionDenied => "check the permissions of the file",
            std::io::ErrorKind::UnexpectedEof => "the file became shorter: do not change it",
            _ => "check the file and its disk",
        };
        let mut wrapped = Self::new(call, ErrorKind::Io, error.to_string(), help).in_file(path);
        wrapped.0.source = Some(Source::Io(error));
        wrapped
    }

    /// Names the public function, if the error names none.
    pub(crate) fn in_call(mut self, call: &'static str) -> Self {
        if self.0.call.is_empty() {
            self.0.call = call;
        }
        self
    }

    /// Names the public function that was called, instead of one that it calls.
    pub(crate) fn for_call(mut self, call: &'static str) -> Self {
        self.0.call = call;
        self
    }

    /// Lists the names of tensors that a file lacks, and of unexpected ones.
    pub(crate) fn with_names(mut self, missing: Vec<String>, unexpected: Vec<String>) -> Self {
        (self.0.missing, self.0.unexpected) = (missing, unexpected);
        self
    }

    /// Names the file.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    /// Names the tensor.
    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        self.0.tensor = Some(name.to_owned());
        self
    }

    /// States the position in the file, in bytes.
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// Returns the cause.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the called function, such as `Weights::open`.
    #[must_use]
    pub fn function(&self) -> &'static str {
        self.0.call
    }

    /// Returns the file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the name of the tensor, if the error is about one.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// Returns the position in the file in bytes, if there is one.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Returns the names of the tensors that a file lacks: of
    /// [`StateDict::finish`](crate::StateDict::finish).
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.0.missing
    }

    /// Returns the names of the unexpected tensors, which the model does not use: of
    /// [`StateDict::finish`](crate::StateDict::finish).
    #[must_use]
    pub fn unexpected(&self) -> &[String] {
        &self.0.unexpected
    }

    /// Returns what to do. Empty for errors of tensors and of the device, whose text has it.
    #[must_use]
    pub fn help(&self) -> &str {
        &self.0.help
    }

    /// Returns the error of an operation on tensors, if it is one.
    #[must_use]
    pub fn tensor_error(&self) -> Option<&scry_tensor::Error> {
        match &self.0.source {
            Some(Source::Tensor(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the error of the device, if it is one.
    #[must_use]
    pub fn gpu(&self) -> Option<&GpuError> {
        match &self.0.source {
            Some(Source::Gpu(error)) => Some(error),
            Some(Source::Tensor(error)) => error.gpu(),
            _ => None,
        }
    }
}

impl From<scry_tensor::Error> for Error {
    fn from(error: scry_tensor::Error) -> Self {
        let kind = if error.gpu().is_some() { ErrorKind::Gpu } else { ErrorKind::Tensor };
        let mut wrapped = Self::new("", kind, error.to_string(), "");
        wrapped.0.source = Some(Source::Tensor(error));
        wrapped
    }
}

impl From<GpuError> for Error {
    fn from(error: GpuError) -> Self {
        let mut wrapped = Self::new("", ErrorKind::Gpu, error.to_string(), "");
        wrapped.0.source = Some(Source::Gpu(error));
        wrapped
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { call, path, tensor, offset, problem, help, .. } = &*self.0;
        let mut place: Vec<String> = Vec::new();
        place.extend(path.iter().map(|path| path.display().to_string()));
        place.extend(tensor.iter().map(|name| format!("tensor `{name}`")));
        place.extend(offset.iter().map(|offset| format!("offset {offset}")));
        f.write_str(call)?;
        match (place.is_empty(), call.is_empty()) {
            (true, true) => {}
            (true, false) => f.write_str(": ")?,
            (false, true) => write!(f, "{}: ", place.join(", "))?,
            (false, false) => write!(f, " ({}): ", place.join(", "))?,
        }
        f.write_str(problem)?;
        if help.is_empty() { Ok(()) } else { write!(f, "; help: {help}") }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| match source {
            Source::Tensor(error) => error as _,
            Source::Gpu(error) => error as _,
            Source::Io(error) => error as _,
        })
    }
}
