//! The driver's methods, driven directly.
