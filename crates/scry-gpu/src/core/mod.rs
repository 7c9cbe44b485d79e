//! What is decided once for all backends: checks, hazards, submissions, memory and transfers.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod command_list;
pub(crate) mod compiled_kernel;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod count_buffer;
pub(crate) mod device_bytes;
pub(crate) mod device_kernels;
pub(crate) mod device_state;
pub(crate) mod driver;
pub(crate) mod encode;
pub(crate) mod failures;
pub(crate) mod handles;
pub(crate) mod hazard;
pub(crate) mod huge_pages;
pub(crate) mod id;
pub(crate) mod indirect;
pub(crate) mod logging;
pub(crate) mod memory;
pub(crate) mod report;
pub(crate) mod same_device;
pub(crate) mod staging;
pub(crate) mod submission_queue;
pub(crate) mod transfer;
