//! The public API: thin, generic types over the implementation in `core`.

pub(crate) mod batch;
pub(crate) mod binding;
pub(crate) mod bound_kernel;
pub(crate) mod buffer;
pub(crate) mod device;
pub(crate) mod device_selection;
pub(crate) mod download;
pub(crate) mod dtype;
pub(crate) mod element;
pub(crate) mod elements;
pub(crate) mod error;
pub(crate) mod futures;
pub(crate) mod info;
pub(crate) mod kernel;
pub(crate) mod latest_submission;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod native;
pub(crate) mod prepared_launch;
pub(crate) mod recording;
pub(crate) mod reduce_op;
pub(crate) mod replay_inputs;
pub(crate) mod slice;
pub(crate) mod ticket;
pub(crate) mod timed_submission;
pub(crate) mod untyped_buffer;
