//! Functions for JavaScript: what the web pages and the tests in Node.js call.
//!
//! Each feature is a part of the module: `explorer` translates kernels without a device, `engine`
//! runs them, `conformance` runs the conformance suite. `cargo xtask web` builds the modules of the
//! pages, `cargo xtask wasm` the one that Node.js runs (`tests/node.js`). Only the explorer is
//! compiled for other systems than WebAssembly, for its tests.

#[cfg(all(feature = "conformance", target_arch = "wasm32"))]
mod conformance;
#[cfg(all(feature = "engine", target_arch = "wasm32"))]
mod engine;
#[cfg(feature = "explorer")]
pub mod explorer;
#[cfg(target_arch = "wasm32")]
mod exports;
#[cfg(any(feature = "explorer", feature = "engine"))]
pub mod reflect;
#[cfg(feature = "engine")]
pub mod request;
#[cfg(all(feature = "conformance", target_arch = "wasm32"))]
mod tensors;
