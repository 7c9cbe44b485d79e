//! Models on the tensors of scry-tensor, their weights and their tokenizers.
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_must_use))))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod decoder;
mod encoder;
mod error;
mod info;
mod json_file;
mod tokenizer;
mod waiting;
mod weights;

pub use decoder::{Decoder, DecoderOptions, Generation, Sampling, StopReason};
pub use encoder::{Encoder, EncoderOptions};
pub use error::{Error, ErrorKind, Result};
pub use info::{ModelInfo, TypeSummary};
pub use scry_tensor::{DType, Device, Shape, Tensor};
pub use tokenizer::{ChatTemplate, DecodeStream, EncodeOptions, Message, Tokenizer};
pub use weights::{
    Array, FileFormat, FromValue, Metadata, StateDict, StoredType, TensorInfo, Value, Weights,
};

#[cfg(target_endian = "big")]
compile_error!("files of weights are little-endian, and are passed to devices as they are");
