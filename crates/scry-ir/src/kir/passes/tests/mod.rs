//! Each pass on kernels made for it, and all of them on random kernels.

mod bounds;
mod differential;
mod eval;
mod fold;
mod interp;
mod motion;
mod random;
mod support;
