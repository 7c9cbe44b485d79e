//! Encodes operations into a command buffer.

use wgpu::{CommandBuffer, CommandEncoderDescriptor, ComputePass, ComputePassDescriptor};

use super::encode::{Operation, Readback};
use super::launch::{Launch, Workgroups};
use super::readback::{Mapping, Pool};
use super::timing::Timer;
use crate::api::error::Result;
use crate::backend::wgpu::device::Gpu;

/// A command buffer, and the results to map once it is done.
pub(super) struct Encoded {
    pub(super) commands: CommandBuffer,
    pub(super) mappings: Vec<Mapping>,
}

/// Encodes operations. With a timer, each dispatch has a pass of its own.
pub(super) fn encode<'o>(
    gpu: &Gpu,
    pool: &Pool,
    operations: impl Iterator<Item = &'o Operation>,
    timer: Option<&Timer>,
) -> Result<Encoded> {
    let descriptor = CommandEncoderDescriptor::default();
    let mut encoder = gpu.device.create_command_encoder(&descriptor);
    let mut mappings = Vec::new();
    let mut pass: Option<ComputePass<'static>> = None;
    // The last launch of the pass.
    let mut previous: Option<&Launch> = None;
    let mut dispatches = 0;
    for operation in operations {
        if let Operation::Launch(launch) = operation {
            let timed = timer.filter(|_| launch.is_dispatch);
            if let Some(timer) = timed {
                drop(pass.take());
                let timestamp_writes = Some(timer.writes(dispatches));
                let descriptor = ComputePassDescriptor { label: None, timestamp_writes };
                dispatches += 1;
                run(launch, None, &mut encoder.begin_compute_pass(&descriptor));
                continue;
            }
            let begin = || {
                let descriptor = ComputePassDescriptor::default();
                encoder.begin_compute_pass(&descriptor).forget_lifetime()
            };
            let previous = previous.replace(launch).filter(|_| pass.is_some());
            run(launch, previous, pass.get_or_insert_with(begin));
            continue;
        }
        drop(pass.take());
        match operation {
            Operation::Clear { buffer, offset, size } => {
                encoder.clear_buffer(buffer, *offset, Some(*size));
            }
            Operation::Copy { src, dst, size } => {
                encoder.copy_buffer_to_buffer(&src.0, src.1, &dst.0, dst.1, *size);
            }
            Operation::Readback(readback) => {
                mappings.push(copy_results(gpu, pool, &mut encoder, readback)?);
            }
            Operation::Launch(_) => {}
        }
    }
    drop(pass);
    if let Some(timer) = timer {
        let times = timer.resolve(gpu, &mut encoder)?;
        mappings.push(copy_results(gpu, pool, &mut encoder, &times)?);
    }
    Ok(Encoded { commands: encoder.finish(), mappings })
}

/// Encodes a copy to a mappable buffer.
fn copy_results(
    gpu: &Gpu,
    pool: &Pool,
    encoder: &mut wgpu::CommandEncoder,
    readback: &Readback,
) -> Result<Mapping> {
    let Readback { src, size, bytes, dst } = readback;
    let buffer = pool.take(gpu, *size)?;
    encoder.copy_buffer_to_buffer(&src.0, src.1, &buffer, 0, *size);
    Ok(Mapping { buffer, size: *size, bytes: bytes.clone(), dst: dst.clone() })
}

/// Encodes a launch into a pass, without what the launch before it has set.
fn run(launch: &Launch, previous: Option<&Launch>, pass: &mut ComputePass<'_>) {
    let previous = previous.filter(|it| it.pipeline == launch.pipeline);
    if previous.is_none() {
        pass.set_pipeline(&launch.pipeline);
    }
    if let Some(group) = &launch.bind_group
        && previous.is_none_or(|it| it.bind_group.as_ref() != Some(group))
    {
        pass.set_bind_group(0, group, &[]);
    }
    if !launch.immediates.is_empty() && previous.is_none_or(|it| it.immediates != launch.immediates)
    {
        pass.set_immediates(0, &launch.immediates);
    }
    match &launch.groups {
        Workgroups::Direct([x, y, z]) => pass.dispatch_workgroups(*x, *y, *z),
        Workgroups::Indirect(buffer, offset) => pass.dispatch_workgroups_indirect(buffer, *offset),
    }
}
