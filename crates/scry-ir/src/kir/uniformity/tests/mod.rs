//! The results of the analysis, and their soundness.

mod kernels;
mod lockstep;
mod support;
mod values;
mod variables;
