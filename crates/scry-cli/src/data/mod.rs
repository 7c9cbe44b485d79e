//! Arrays in host memory, their files and generators.

pub mod array;
pub mod cast;
pub mod dtype;
pub mod file;
pub mod generate;
pub mod location;
pub mod npy;
pub mod npz;
pub mod png;
pub mod source;

pub use array::{Array, Bytes, Shape};
pub use dtype::Dtype;
pub use location::{Format, Location};
pub use source::{Loaded, Source};
