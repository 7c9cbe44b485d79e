//! Arrays in host memory, and the files and generators that they come from and go to.

pub mod array;
pub mod dtype;
pub mod file;
pub mod generate;
pub mod npy;
pub mod png;
pub mod source;

pub use array::{Array, Bytes, Shape};
pub use dtype::Dtype;
pub use source::{Format, Loaded, Source};
