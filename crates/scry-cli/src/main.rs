//! The `scry` command.

fn main() {}
