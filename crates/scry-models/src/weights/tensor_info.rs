//! What the beginning of a file describes: its format, and its tensors.

use scry_tensor::Shape;

use super::metadata::Metadata;
use super::stored_type::StoredType;

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
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) stored: StoredType,
    /// Position of its file in the list.
    pub(super) file: usize,
    pub(super) offset: u64,
    pub(super) bytes: u64,
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
pub(super) struct Header {
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) metadata: Metadata,
}

/// Checks that the data of tensors does not overlap; otherwise returns the positions of two.
pub(super) fn check_overlaps(tensors: &[TensorInfo]) -> Result<(), (usize, usize)> {
    let mut order: Vec<usize> = (0..tensors.len()).filter(|it| tensors[*it].bytes > 0).collect();
    order.sort_by_key(|position| tensors[*position].offset);
    let overlap = order.windows(2).find(|pair| {
        let [first, second] = [&tensors[pair[0]], &tensors[pair[1]]];
        first.offset + first.bytes > second.offset
    });
    overlap.map_or(Ok(()), |pair| Err((pair[0], pair[1])))
}
