//! Facts are found, and hold.

mod kernels;
mod lockstep;
mod support;
mod values;
mod variables;
