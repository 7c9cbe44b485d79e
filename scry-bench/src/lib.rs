//! Code shared by the programs that compare scry-gpu with its peers.

pub mod data;
pub mod kernels;
pub mod runner;
pub mod table;
pub mod torch;
