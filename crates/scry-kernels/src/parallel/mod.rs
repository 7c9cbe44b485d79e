//! Linear layers split over the ranks of a group of devices (tensor parallelism).
//!
//! [`layer`] describes layers, [`prepare`] checks a call and prepares the product of a rank and its
//! collectives, and [`op`] runs them.

mod layer;
mod op;
mod prepare;
mod shard;

pub use layer::{ColumnParallelLinear, RowParallelLinear};
pub use op::ParallelOp;
pub use shard::shard;
