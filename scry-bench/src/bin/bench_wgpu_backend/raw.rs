//! wgpu itself: kernels as they are, with its default checks.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Result, bail};
use wgpu::{BindGroup, Buffer, BufferUsages, ComputePipeline, Device, PollType, Queue};

use super::cases::{Case, Operand};

/// A device of wgpu.
pub struct Raw {
    device: Device,
    queue: Queue,
}

/// A kernel with its operands.
pub struct Bound {
    pipeline: ComputePipeline,
    group: BindGroup,
    buffers: Vec<Buffer>,
    workgroups: [u32; 3],
    immediate: Option<f32>,
}

impl Raw {
    /// Opens the Vulkan adapter of this name.
    pub fn open(name: &str) -> Result<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = ready(instance.enumerate_adapters(wgpu::Backends::VULKAN))?;
        let adapter = adapters
            .into_iter()
            .find(|adapter| adapter.get_info().name == name)
            .with_context(|| format!("wgpu has no Vulkan adapter `{name}`"))?;
        let (device, queue) = ready(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: adapter.limits(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        }))??;
        Ok(Self { device, queue })
    }

    /// Compiles a kernel and uploads its operands.
    pub fn bind(&self, case: &Case) -> Result<Bound> {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(case.name),
            source: wgpu::ShaderSource::Wgsl(case.source.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(case.name),
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        let buffers: Vec<_> = case.operands.iter().map(|operand| self.upload(operand)).collect();
        let entries: Vec<_> = (0..)
            .zip(&buffers)
            .map(|(binding, buffer)| {
                let resource = buffer.as_entire_binding();
                wgpu::BindGroupEntry { binding, resource }
            })
            .collect();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(case.name),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let Case { workgroups, immediate, .. } = *case;
        Ok(Bound { pipeline, group, buffers, workgroups, immediate })
    }

    fn upload(&self, operand: &Operand) -> Buffer {
        let kind = if operand.is_uniform { BufferUsages::UNIFORM } else { BufferUsages::STORAGE };
        let bytes = bytemuck::cast_slice(&operand.words);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            // Uniform buffers have whole vectors.
            size: bytes.len().next_multiple_of(16) as u64,
            usage: kind | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    /// Runs a kernel several times in one submission, and waits.
    pub fn run(&self, bound: &Bound, times: usize) -> Result<()> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&bound.pipeline);
        pass.set_bind_group(0, &bound.group, &[]);
        if let Some(value) = bound.immediate {
            pass.set_immediates(0, bytemuck::bytes_of(&value));
        }
        let [x, y, z] = bound.workgroups;
        for _ in 0..times {
            pass.dispatch_workgroups(x, y, z);
        }
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.wait()
    }

    /// Returns the words of a binding.
    pub fn read(&self, bound: &Bound, binding: usize, len: usize) -> Result<Vec<u32>> {
        let size = (len * size_of::<u32>()) as u64;
        let readback = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&bound.buffers[binding], 0, &readback, 0, size);
        self.queue.submit([encoder.finish()]);
        readback.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        Ok(bytemuck::cast_slice(&readback.get_mapped_range(..)?).to_vec())
    }

    fn wait(&self) -> Result<()> {
        self.device.poll(PollType::wait_indefinitely())?;
        Ok(())
    }
}

/// Returns the value of a future that is immediately ready, as these are outside browsers.
fn ready<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => bail!("wgpu returned a future that is not immediately ready"),
    }
}
