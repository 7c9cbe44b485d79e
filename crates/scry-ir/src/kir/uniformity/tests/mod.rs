//! What the analysis finds, and that it holds.

mod kernels;
mod lockstep;
mod support;
mod values;
mod variables;
