//! The queue: encodes steps into command buffers, and orders them by a timeline semaphore.

pub(super) mod command_buffers;
pub(super) mod encode;
pub(super) mod submit;
pub(super) mod timeline;
pub(super) mod timing;
