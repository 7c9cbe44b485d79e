//! The queue: from steps to command buffers, and the timeline that orders them.

pub(super) mod command_buffers;
pub(super) mod encode;
pub(super) mod submit;
pub(super) mod timeline;
pub(super) mod timing;
