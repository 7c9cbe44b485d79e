//! Groups of devices, and collective operations on their buffers.
//!
//! A member of a group, a *rank*, makes the same calls as all others. [`device_group`] and
//! [`collectives`] are the public API; they check a call and describe it as data ([`call::Call`]).
//! [`host_memory`] executes calls through host memory: it reads the source, exchanges bytes with
//! the other ranks through a [`channel`], and writes the destination. The ranks of one process
//! share a [`coordinator`], which matches calls and computes results; [`server`] gives the ranks of
//! other processes access to that of rank 0, and [`client`] uses it.

mod arithmetic;
mod batch;
mod call;
mod channel;
mod client;
mod collectives;
mod coordinator;
mod device_group;
mod duplicates;
mod fault;
mod handshake;
mod host_memory;
mod membership;
mod message;
mod nccl;
mod negotiation;
mod progress;
mod reduce_op;
mod rendezvous;
mod results;
mod server;
mod token;
mod wait;
mod watchdog;
mod wire;

pub(crate) use call::{Call, ENCODED_SIZE as CALL_SIZE, Operation};
pub use device_group::{DeviceGroup, GroupTransport};
pub(crate) use fault::Seat;
pub use membership::Membership;
pub use reduce_op::ReduceOp;
pub use rendezvous::Rendezvous;
