//! Groups of devices, and collective operations on their buffers.
//!
//! A member of a group, a *rank*, makes the same calls as all others. [`device_group`] and
//! [`collectives`] are the public API; they check a call and describe it as data:
//! [`Call`](crate::core::collective::Call).
//!
//! [`host_memory`] executes calls through host memory: it reads the source, exchanges bytes with
//! the other ranks through a [`channel`], and writes the destination. The ranks of one process
//! share a [`coordinator`], which matches calls and computes results; [`server`] gives the ranks of
//! other processes access to that of rank 0, and [`client`] uses it.
//!
//! [`nccl`] makes calls commands of the devices instead, where [`negotiation`] finds that all ranks
//! can; a [`watchdog`] ends them when the coordinator finds that they will never be done. [`batch`]
//! adds such calls to batches.

mod arithmetic;
mod batch;
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
mod rendezvous;
mod results;
mod server;
mod token;
mod wait;
mod watchdog;
mod wire;

pub use device_group::{DeviceGroup, GroupTransport};
pub use membership::Membership;
pub use rendezvous::Rendezvous;
