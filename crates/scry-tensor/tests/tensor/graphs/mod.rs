//! Graphs: recording, plans against operations one by one, and bad input.

mod bad_input;
mod plans;
mod random;
mod recording;
