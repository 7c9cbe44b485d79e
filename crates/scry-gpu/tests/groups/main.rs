//! Tests of groups of devices: collectives against a reference on the host, in one process and in
//! several, and every fault.

#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod collectives;
mod faults;
mod interleavings;
mod local;
mod namespaces;
mod nccl;
mod nccl_faults;
mod processes;
mod reference;
mod rejections;
mod strangers;
mod support;
mod versions;
