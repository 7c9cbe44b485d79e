//! Each pass on specific kernels, and all passes on random kernels.

mod bounds;
mod const_eval;
mod differential;
mod fold;
mod licm;
mod random;
mod support;
