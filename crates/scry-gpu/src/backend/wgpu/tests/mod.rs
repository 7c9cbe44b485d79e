//! Tests of the driver's methods, on the first adapter.

mod copies;
mod kernels;
mod submissions;

use super::WgpuDriver;
use super::adapter::usable;
use super::limits::optional_features;
use crate::backend::tests::{
    DOUBLE, DriverExt, bytes, compute_barrier, copy, dispatch, dispatch_with, full_barrier, range,
    run, submissions as bodies,
};
use crate::core::command::{BufferRange, Command};
use crate::core::driver::{Driver, GridSource, MemoryKind, Work};

/// Opens the first adapter; prints why and returns `None` if there is none and none is required.
fn driver() -> Option<WgpuDriver> {
    open(wgpu::Features::all())
}

/// Opens the first adapter with those of its features that are in a set.
fn open(features: wgpu::Features) -> Option<WgpuDriver> {
    match usable() {
        Ok(adapters) => {
            let features = optional_features(adapters[0].raw.features()) & features;
            Some(adapters[0].open_with(features).unwrap())
        }
        Err(absence) => {
            // On Linux the adapters are those of Vulkan.
            let required = std::env::var_os("SCRY_REQUIRE_VULKAN").is_some_and(|v| v != "0");
            assert!(!required, "SCRY_REQUIRE_VULKAN is set, but {absence:?}");
            eprintln!("SKIPPED, no wgpu device: {}", absence.reason);
            None
        }
    }
}

/// Opens the first adapter twice: with native immediates, if it has them, and without.
fn drivers() -> Vec<WgpuDriver> {
    let without = wgpu::Features::all() - wgpu::Features::IMMEDIATES;
    [wgpu::Features::all(), without].into_iter().filter_map(open).collect()
}
