//! Tests of the core on the null device, which requires no driver.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod barriers;
mod batch_replays;
mod bound_kernels;
mod buffers;
mod chains;
mod copies;
mod deadlines;
mod debug;
mod elements;
mod failures;
mod functions;
mod indirect;
mod labels;
mod launches;
mod lifetimes;
mod linearisation;
mod logs;
mod prepared_launches;
mod replays;
mod reports;
mod views;

use scry_gpu::Device;
use scry_gpu::testing::{self, Observed};

/// Opens the null device with a log that counts the commands submitted to it.
fn observed() -> (Device, Observed) {
    testing::observed(testing::null_info())
}
