//! What the integration tests of several crates share.
//!
//! Without features it has no dependencies: golden files, numbers from the environment, and where
//! the repository is. `gpu` adds the devices that tests run on, a kernel and random data for them,
//! `ptx` the arithmetic of PTX.
//!
//! Unit tests of scry-gpu and of the crates below it must not use `gpu`: its types are those of
//! another build of scry-gpu than the one that is tested. Tests in `tests/` may.

#![forbid(unsafe_code)]

#[cfg(feature = "ptx")]
pub mod alu;
#[cfg(feature = "gpu")]
mod devices;
mod environment;
pub mod golden;
#[cfg(feature = "gpu")]
mod step;

#[cfg(feature = "gpu")]
pub use devices::{devices, null, on_each_device, succeed};
pub use environment::{env_number, root};
#[cfg(feature = "gpu")]
pub use scry_conformance::random_f32;
#[cfg(feature = "gpu")]
pub use step::STEP;
