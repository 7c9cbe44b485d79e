//! Weights: tensors in files, read when they are needed.

mod convert;
mod gguf;
mod load;
mod mapped;
mod open;
mod safetensors;
mod source;
mod state_dict;
mod stored_type;
mod value;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use scry_tensor::Shape;

use self::source::Source;
pub use self::state_dict::StateDict;
pub use self::stored_type::StoredType;
pub use self::value::{Array, FromValue, Metadata, Value};
use crate::error::Result;

/// The format of a file of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// safetensors: JSON, then data.
    Safetensors,
    /// GGUF, the format of llama.cpp: metadata with the tokenizer, then data, often quantised.
    Gguf,
}

impl FileFormat {
    /// Returns the name in lower case: `safetensors`, `gguf`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Gguf => "gguf",
        }
    }
}

/// A tensor in a file: its name, shape, type and position.
#[derive(Debug, Clone)]
pub struct TensorInfo {
    name: String,
    shape: Shape,
    stored: StoredType,
    /// Position of its file in the list.
    file: usize,
    offset: u64,
    bytes: u64,
}

impl TensorInfo {
    /// Returns the name, such as `encoder.layer.0.output.dense.weight`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the sizes of the axes in row-major order, the outermost first, for both formats.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the element type in the file.
    #[must_use]
    pub fn stored_type(&self) -> StoredType {
        self.stored
    }

    /// Returns the position of the data in its file, in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the size of the data in bytes.
    #[must_use]
    pub fn byte_size(&self) -> u64 {
        self.bytes
    }
}

/// What the beginning of a file describes.
struct Header {
    tensors: Vec<TensorInfo>,
    metadata: Metadata,
}

struct OpenFile {
    path: std::path::PathBuf,
    source: Source,
}

/// The tensors of a model in files: names, types and shapes, with data that is read when a tensor is
/// loaded.
///
/// Opening reads the description of the tensors only. [`Weights::tensor`] copies the data of one
/// tensor to a device in pieces of at most 16 MiB, so that files can be larger than the memory of the
/// host.
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
    /// safetensors files; or a folder with such an index, with `model.safetensors`, or with a single
    /// file of weights. The format is that of the content, not of the name.
    ///
    /// ```no_run
    /// let weights = scry_models::Weights::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
    /// assert_eq!(weights.metadata().require::<&str>("general.architecture")?, "llama");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if a file cannot be read;
    /// [`ErrorKind::Format`](crate::ErrorKind::Format), with the offset, if it is of another format,
    /// truncated or inconsistent; [`ErrorKind::Names`](crate::ErrorKind::Names) if the files of a
    /// folder are ambiguous.
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
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.path)
    }

    /// Returns the tensors, in the order of their files and data.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// Returns the tensor of a name.
    #[must_use]
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.positions.get(name).map(|position| &self.tensors[*position])
    }

    /// Returns the metadata: of a GGUF file its keys, of safetensors files the strings of the first.
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

/// Checks that the data of tensors does not overlap; otherwise returns the positions of two.
fn check_overlaps(tensors: &[TensorInfo]) -> Result<(), (usize, usize)> {
    let mut order: Vec<usize> = (0..tensors.len()).filter(|it| tensors[*it].bytes > 0).collect();
    order.sort_by_key(|position| tensors[*position].offset);
    let overlap = order.windows(2).find(|pair| {
        let [first, second] = [&tensors[pair[0]], &tensors[pair[1]]];
        first.offset + first.bytes > second.offset
    });
    overlap.map_or(Ok(()), |pair| Err((pair[0], pair[1])))
}
