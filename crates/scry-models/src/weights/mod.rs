//! The weights of a model: tensors in files, read when they are needed.

mod convert;
mod gguf;
mod load;
mod mapped;
mod metadata;
mod open;
mod safetensors;
mod source;
mod state_dict;
mod stored_type;
mod tensor_info;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub use self::metadata::{Array, FromValue, Metadata, Value};
use self::source::Source;
pub use self::state_dict::StateDict;
pub use self::stored_type::StoredType;
pub use self::tensor_info::{FileFormat, TensorInfo};
use crate::error::Result;

/// A file that is open.
struct OpenFile {
    path: PathBuf,
    source: Source,
}

/// The weights of a model in safetensors or GGUF files. Opening reads names, types and shapes; data
/// is read when a tensor is loaded.
///
/// Opening reads the description of the tensors only. [`Weights::tensor`] copies the data of one
/// tensor to a device in pieces of at most 16 MiB, so that files can be larger than the memory of
/// the host.
///
/// ```no_run
/// use scry_models::{DType, Device, Weights};
///
/// let gpu = Device::auto()?;
/// let weights = Weights::open("model.safetensors")?;
/// for info in weights.tensors() {
///     println!("{} {} {}", info.name(), info.shape(), info.stored_type());
/// }
/// let table = weights.tensor("embeddings.word_embeddings.weight", &gpu)?;
/// let small = weights.tensor_as("embeddings.word_embeddings.weight", DType::F16, &gpu)?;
/// # Ok::<(), scry_models::Error>(())
/// ```
pub struct Weights {
    format: FileFormat,
    files: Vec<OpenFile>,
    tensors: Vec<TensorInfo>,
    positions: HashMap<String, usize>,
    metadata: Metadata,
}

impl Weights {
    /// Opens a safetensors or GGUF file; the index (`model.safetensors.index.json`) of several
    /// safetensors files; or a folder with such an index, with `model.safetensors`, or with a
    /// single file of weights. The format is that of the content, not of the name.
    ///
    /// ```no_run
    /// let weights = scry_models::Weights::open("models/SmolLM2-135M-Instruct.Q4_1.gguf")?;
    /// assert_eq!(weights.metadata().require::<&str>("general.architecture")?, "llama");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a file cannot be read;
    /// [`ErrorKind::Format`](crate::ErrorKind::Format), with the offset, if it is of another
    /// format, truncated or inconsistent; [`ErrorKind::Keys`](crate::ErrorKind::Keys) if the
    /// files of a folder are ambiguous.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        open::open("Weights::open", path.as_ref(), Source::open)
    }

    /// Opens a file that is in memory.
    ///
    /// ```
    /// use scry_models::{Device, Weights};
    ///
    /// let header = br#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    /// let mut file = (header.len() as u64).to_le_bytes().to_vec();
    /// file.extend(header);
    /// file.extend([1.5f32, 2.5].map(f32::to_le_bytes).concat());
    ///
    /// let gpu = Device::open("cpu")?;
    /// let weights = Weights::from_bytes(file)?;
    /// assert_eq!(weights.tensor("x", &gpu)?.to_vec::<f32>()?, [1.5, 2.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Weights::open`].
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Result<Self> {
        open::single("Weights::from_bytes", "memory".into(), Source::Memory(bytes.into()))
    }

    /// Returns the format of the files.
    #[must_use]
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns the files, in alphabetical order if there are several.
    ///
    /// ```no_run
    /// # let weights = scry_models::Weights::open("model.safetensors")?;
    /// for file in weights.files() {
    ///     println!("{}", file.display());
    /// }
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Returns the tensors, in the order of their files and data.
    ///
    /// ```no_run
    /// # let weights = scry_models::Weights::open("model.safetensors")?;
    /// let bytes: u64 = weights.tensors().map(|info| info.byte_size()).sum();
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// Returns the tensor of a name.
    ///
    /// ```no_run
    /// # let weights = scry_models::Weights::open("model.safetensors")?;
    /// let info = weights.info("embeddings.word_embeddings.weight").expect("it is an encoder");
    /// println!("{} at {}", info.shape(), info.offset());
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    #[must_use]
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.positions.get(name).map(|position| &self.tensors[*position])
    }

    /// Returns the metadata: of a GGUF file its keys, of safetensors files the strings of the
    /// first.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weights")
            .field("format", &self.format)
            .field("files", &self.files().collect::<Vec<_>>())
            .field("tensors", &self.tensors.len())
            .finish_non_exhaustive()
    }
}
