//! A plan carried out on a device, with a clock.

use std::time::{Duration, Instant};

use scry_gpu::{Binding, Buffer, CompileOptions, Device, Element, Launch};

use super::plan::{Plan, Planned};
use super::results::{Finished, Results, Times};
use crate::data::Bytes;
use crate::report::Failure;

/// Two bytes of a buffer, whatever they mean: the plan has checked the types, and every type of
/// WGSL is a whole number of these.
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Raw([u8; 2]);

// SAFETY: two bytes of plain data, no padding, every pattern valid; the layout says nothing.
unsafe impl Element for Raw {}

/// Compiles, uploads, runs and downloads.
pub fn execute(
    device: &Device,
    source: &str,
    options: &CompileOptions,
    plan: Plan,
) -> Result<Results, Failure> {
    let start = Instant::now();
    let kernel = device.compile_with(source, options)?;
    let compiled = start.elapsed();

    let start = Instant::now();
    let buffers: Vec<Buffer<Raw>> = plan
        .buffers
        .iter()
        .map(|planned| upload(device, planned))
        .collect::<Result<_, Failure>>()?;
    device.wait()?;
    let uploaded = start.elapsed();

    let mut launch = Launch::invocations(plan.invocations);
    if let Some(bytes) = plan.immediates {
        launch = launch.immediate_bytes(bytes);
    }
    let bindings: Vec<&dyn Binding> = buffers.iter().map(|buffer| buffer as &dyn Binding).collect();
    let mut batch = device.batch();
    batch.run_configured(&kernel, &bindings, launch)?;
    let start = Instant::now();
    let stamps = batch.submit_timed()?;
    let (computed, on_device) = match stamps.as_slice() {
        [] => (start.elapsed(), false),
        stamps => (stamps.iter().sum::<Duration>(), true),
    };

    let start = Instant::now();
    let mut finished = Vec::new();
    for (planned, buffer) in plan.buffers.into_iter().zip(&buffers) {
        if planned.output.is_some() {
            let mut bytes = Bytes::zeroed(planned.data.len)?;
            buffer.download_into(bytemuck::cast_slice_mut(bytes.as_mut_slice()))?;
            finished.push(Finished { planned, bytes });
        }
    }
    Ok(Results {
        entry_point: kernel.entry_point().to_owned(),
        invocations: plan.invocations,
        finished,
        times: Times {
            compile: compiled,
            upload: uploaded,
            gpu: computed,
            on_device,
            download: start.elapsed(),
        },
    })
}

fn upload(device: &Device, planned: &Planned) -> Result<Buffer<Raw>, Failure> {
    let buffer = match &planned.data.bytes {
        Some(bytes) => device.upload(bytemuck::cast_slice(bytes.as_slice()))?,
        None => device.alloc(planned.data.len / size_of::<Raw>())?,
    };
    Ok(buffer.with_label(&planned.slot.name))
}
