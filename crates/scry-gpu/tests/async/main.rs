//! Tests of awaiting devices, under different executors: pollster, tokio with one and with several
//! threads, smol.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cpu_time;
mod harness;
mod loss;
mod tickets;
mod transfers;
mod would_block;
