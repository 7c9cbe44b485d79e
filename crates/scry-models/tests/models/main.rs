//! Tests of file formats, and of ready models: tiny ones with random weights, against plain loops
//! on the host, and the real ones if `SCRY_MODELS_DIR` has them.

mod allocations;
mod bert;
mod decoding;
mod encoding;
mod files;
mod formats;
mod futures;
mod hostile;
mod llama;
mod loading;
mod real;
mod support;
