//! Each pass on kernels made for it, and all of them on random kernels.

mod bounds;
mod const_eval;
mod differential;
mod fold;
mod licm;
mod random;
mod support;
