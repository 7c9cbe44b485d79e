//! Functions of bits.
