//! The queue: encoding and submitting steps, completion, results and times.

pub(super) mod encode;
pub(super) mod execute;
pub(super) mod launch;
pub(super) mod readback;
pub(super) mod submit;
pub(super) mod timeline;
pub(super) mod timing;
pub(super) mod word_kernels;
