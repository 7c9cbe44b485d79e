//! What the programs that compare scry-gpu with its peers share.

pub mod data;
pub mod kernels;
pub mod table;
pub mod torch;
