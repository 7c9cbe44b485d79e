//! Tests of the results of the analysis, and of their soundness.

mod kernels;
mod lockstep;
mod support;
mod values;
mod variables;
