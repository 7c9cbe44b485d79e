//! The queue: encodes steps as launches, copies and graphs; the timeline orders them.

mod capture;
pub(super) mod communicator;
pub(super) mod cublas;
pub(super) mod declared_params;
pub(super) mod encode;
pub(super) mod graph;
mod issue;
pub(super) mod overlap;
pub(super) mod params;
pub(super) mod stream;
pub(super) mod submit;
pub(super) mod timeline;
pub(super) mod timing;
