//! wgpu on Vulkan, with all limits and all but the experimental features of the adapter, and bind
//! groups created in advance.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use wgpu::{BufferUsages, CommandBuffer, PollType};

use super::{BufferId, HostTime, KernelId, Peer, PlanId, Span, Step, Table};
use crate::stats::thread_time;

/// One device and its objects.
pub struct Wgpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    kernels: Table<wgpu::ComputePipeline>,
    buffers: Table<wgpu::Buffer>,
    plans: Table<Vec<PreparedStep>>,
    /// Memory that the host reads, reused by reads of the same size.
    readback: Option<wgpu::Buffer>,
}

/// A step with its bind group.
struct PreparedStep {
    step: Step,
    group: Option<wgpu::BindGroup>,
}

impl Wgpu {
    /// Opens the Vulkan adapter named `name`.
    pub fn open(name: &str) -> Result<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = poll_once(instance.enumerate_adapters(wgpu::Backends::VULKAN))?;
        let adapter = adapters
            .into_iter()
            .find(|adapter| adapter.get_info().name == name)
            .with_context(|| format!("wgpu has no Vulkan adapter `{name}`"))?;
        let experimental = wgpu::Features::all_experimental_mask();
        let (device, queue) = poll_once(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: adapter.features() - experimental,
            required_limits: adapter.limits(),
            memory_hints: wgpu::MemoryHints::Performance,
            ..Default::default()
        }))??;
        let (kernels, buffers, plans) = Default::default();
        Ok(Self { device, queue, kernels, buffers, plans, readback: None })
    }

    fn wait(&self) -> Result<()> {
        self.device.poll(PollType::wait_indefinitely())?;
        Ok(())
    }

    fn buffer(&self, size: u64, usage: BufferUsages) -> wgpu::Buffer {
        let mapped_at_creation = false;
        let descriptor = wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation };
        self.device.create_buffer(&descriptor)
    }

    fn bind_group(&self, kernel: KernelId, bindings: &[Span]) -> wgpu::BindGroup {
        let entry = |(binding, span): (usize, &Span)| wgpu::BindGroupEntry {
            binding: binding as u32,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: self.buffers.get(span.buffer.0),
                offset: bytes(span.start),
                size: wgpu::BufferSize::new(bytes(span.len)),
            }),
        };
        let entries: Vec<_> = bindings.iter().enumerate().map(entry).collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.kernels.get(kernel.0).get_bind_group_layout(0),
            entries: &entries,
        })
    }

    /// Records a plan: consecutive launches in one pass.
    fn encode(&self, plan: PlanId) -> CommandBuffer {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut steps = self.plans.get(plan.0).iter().peekable();
        while let Some(first) = steps.peek() {
            if let Step::Copy { from, to } = &first.step {
                let (source, target) =
                    (self.buffers.get(from.buffer.0), self.buffers.get(to.buffer.0));
                let (start, size) = (bytes(from.start), bytes(from.len));
                encoder.copy_buffer_to_buffer(source, start, target, bytes(to.start), size);
                steps.next();
                continue;
            }
            let mut pass = encoder.begin_compute_pass(&Default::default());
            while let Some(prepared) = steps.next_if(|next| next.group.is_some()) {
                self.launch(&mut pass, prepared);
            }
        }
        encoder.finish()
    }

    fn launch(&self, pass: &mut wgpu::ComputePass<'_>, prepared: &PreparedStep) {
        if let Step::Launch { kernel, groups: [x, y], immediate, .. } = &prepared.step {
            pass.set_pipeline(self.kernels.get(kernel.0));
            pass.set_bind_group(0, &prepared.group, &[]);
            if let Some(value) = immediate {
                pass.set_immediates(0, bytemuck::bytes_of(value));
            }
            pass.dispatch_workgroups(*x, *y, 1);
        }
    }

    /// Copies a buffer to mapped memory, and calls `use_data` with it.
    fn map(&mut self, buffer: BufferId, use_data: impl FnOnce(&[f32])) -> Result<()> {
        let size = self.buffers.get(buffer.0).size();
        let readback = match self.readback.take() {
            Some(buffer) if buffer.size() == size => buffer,
            _ => self.buffer(size, BufferUsages::MAP_READ | BufferUsages::COPY_DST),
        };
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(self.buffers.get(buffer.0), 0, &readback, 0, size);
        self.queue.submit([encoder.finish()]);
        readback.map_async(wgpu::MapMode::Read, .., |_| {});
        self.wait()?;
        use_data(bytemuck::cast_slice(&readback.get_mapped_range(..)?));
        readback.unmap();
        self.readback = Some(readback);
        Ok(())
    }
}

/// Returns the size of `elements` in bytes.
fn bytes(elements: usize) -> u64 {
    (elements * size_of::<f32>()) as u64
}

/// Returns the value of a future that is immediately ready, as these are outside browsers.
fn poll_once<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => bail!("wgpu returned a future that is not immediately ready"),
    }
}

impl Peer for Wgpu {
    fn name(&self) -> &'static str {
        "wgpu-30"
    }

    fn compile(&mut self, wgsl: &str) -> Result<KernelId> {
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: None,
            source: wgpu::ShaderSource::Wgsl(wgsl.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            cache: None,
        });
        Ok(KernelId(self.kernels.add(pipeline)))
    }

    fn upload(&mut self, data: &[f32]) -> Result<BufferId> {
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let buffer = BufferId(self.buffers.add(self.buffer(bytes(data.len()), usage)));
        self.write(buffer, data)?;
        Ok(buffer)
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(buffer.0);
    }

    fn clear(&mut self) {
        self.plans = Table::default();
        self.buffers = Table::default();
        self.readback = None;
    }

    fn write(&mut self, buffer: BufferId, data: &[f32]) -> Result<Option<()>> {
        self.queue.write_buffer(self.buffers.get(buffer.0), 0, bytemuck::cast_slice(data));
        // Writes are only executed by the next submission.
        self.queue.submit([]);
        self.wait()?;
        Ok(Some(()))
    }

    fn read_into(&mut self, buffer: BufferId, out: &mut [f32]) -> Result<Option<()>> {
        self.map(buffer, |mapped| out.copy_from_slice(mapped))?;
        Ok(Some(()))
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>> {
        let mut out = Vec::new();
        self.map(buffer, |mapped| out = mapped.to_vec())?;
        Ok(out)
    }

    fn plan(&mut self, steps: &[Step], _chained: bool) -> Result<Option<PlanId>> {
        let prepare = |step: &Step| {
            let group = match step {
                Step::Launch { kernel, bindings, .. } => Some(self.bind_group(*kernel, bindings)),
                Step::Copy { .. } => None,
            };
            PreparedStep { step: step.clone(), group }
        };
        let prepared = steps.iter().map(prepare).collect();
        Ok(Some(PlanId(self.plans.add(prepared))))
    }

    fn run(&mut self, plan: PlanId) -> Result<()> {
        self.queue.submit([self.encode(plan)]);
        self.wait()
    }

    fn record(&mut self, plan: PlanId) -> Result<HostTime> {
        let start = thread_time();
        let commands = self.encode(plan);
        let record = thread_time() - start;
        self.queue.submit([commands]);
        let submit = thread_time() - start;
        self.wait()?;
        Ok(HostTime { record, submit })
    }

    fn replay(&mut self, _plan: PlanId) -> Result<Option<Duration>> {
        // wgpu's command buffers can only be submitted once.
        Ok(None)
    }
}
