//! Facts are found, and hold.

mod kernels;
mod lockstep;
mod random;
mod support;
mod values;
mod variables;
