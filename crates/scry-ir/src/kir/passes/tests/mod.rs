//! Tests of each pass on specific kernels, and of all passes on random kernels.

mod bounds;
mod const_eval;
mod differential;
mod fold;
mod licm;
mod random;
mod support;
