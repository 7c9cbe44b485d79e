//! The core on the null device, which requires no driver.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod barriers;
mod bound_kernels;
mod buffers;
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
mod replays;
mod reports;
mod views;

use scry_gpu::testing::{self, Observed};
use scry_gpu::{BackendKind, Device};

/// A kernel that reads one buffer and writes another.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;

    @compute @workgroup_size(64)
    fn step(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&input) {
            output[id.x] = input[id.x] + 1u;
        }
    }
";

fn null() -> Device {
    Device::with_backend(BackendKind::Null).expect("the null device is always there")
}

fn observed() -> (Device, Observed) {
    testing::observed(testing::null_info())
}
