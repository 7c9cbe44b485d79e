//! Chores of the Scry repository: `cargo xtask tidy`, `size`, `gpu-bundle`.

fn main() {}
