//! Functions of floats.
