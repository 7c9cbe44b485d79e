//! Graphs: recording, plans against operations one by one, and bad input.

mod bad_input;
mod epilogues;
mod kernels;
mod memory;
mod merging;
mod numbers;
mod plans;
pub mod random;
mod recording;
mod replays;
mod reports;
mod rows;
mod sizes;
mod states;
mod warnings;
