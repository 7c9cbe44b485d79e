//! The core, on the null device: no driver is needed for any of this.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "core/barriers.rs"]
mod barriers;
#[path = "core/bound_kernels.rs"]
mod bound_kernels;
#[path = "core/buffers.rs"]
mod buffers;
#[path = "core/copies.rs"]
mod copies;
#[path = "core/deadlines.rs"]
mod deadlines;
#[path = "core/debug.rs"]
mod debug;
#[path = "core/elements.rs"]
mod elements;
#[path = "core/failures.rs"]
mod failures;
#[path = "core/folding.rs"]
mod folding;
#[path = "core/functions.rs"]
mod functions;
#[path = "core/indirect.rs"]
mod indirect;
#[path = "core/labels.rs"]
mod labels;
#[path = "core/launches.rs"]
mod launches;
#[path = "core/lifetimes.rs"]
mod lifetimes;
#[path = "core/logs.rs"]
mod logs;
#[path = "core/replays.rs"]
mod replays;
#[path = "core/reports.rs"]
mod reports;
#[path = "core/views.rs"]
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
