//! Weights: tensors in files, read when they are needed.

mod convert;
mod gguf;
mod handle;
mod load;
mod mapped;
mod open;
mod safetensors;
mod source;
mod state_dict;
mod stored_type;
mod tensor_info;
mod value;

pub use self::handle::Weights;
pub use self::state_dict::StateDict;
pub use self::stored_type::StoredType;
pub use self::tensor_info::{FileFormat, TensorInfo};
pub use self::value::{Array, FromValue, Metadata, Value};
