//! This repository's scry-gpu.

use std::time::Duration;

use anyhow::Result;
use scry_gpu::{Batch, Buffer, Device, Kernel, Launch, Recording, Slice};

use super::{BufferId, HostTime, KernelId, Peer, PlanId, Span, Step, Table};
use crate::stats::thread_time;

/// One device and its objects.
pub struct Scry {
    device: Device,
    kernels: Table<Kernel>,
    buffers: Table<Buffer<f32>>,
    plans: Table<Plan>,
}

struct Plan {
    steps: Vec<Step>,
    recording: Option<Recording>,
}

impl Scry {
    /// Wraps a device.
    pub fn new(device: Device) -> Self {
        let (kernels, buffers, plans) = Default::default();
        Self { device, kernels, buffers, plans }
    }

    fn slice(&self, span: Span) -> Result<Slice<'_, f32>> {
        let Span { buffer, start, len } = span;
        Ok(self.buffers.get(buffer.0).slice(start..start + len)?)
    }

    fn batch(&self, plan: PlanId) -> Result<Batch> {
        let mut batch = self.device.batch();
        for step in &self.plans.get(plan.0).steps {
            self.add(&mut batch, step)?;
        }
        Ok(batch)
    }

    fn add(&self, batch: &mut Batch, step: &Step) -> Result<()> {
        match step {
            Step::Launch { kernel, bindings, groups, immediate } => {
                let kernel = self.kernels.get(kernel.0);
                let launch = launch(*groups, *immediate);
                match **bindings {
                    [a] => batch.run(kernel, &[&self.slice(a)?], launch)?,
                    [a, b] => {
                        let (a, b) = (self.slice(a)?, self.slice(b)?);
                        batch.run(kernel, &[&a, &b], launch)?
                    }
                    _ => anyhow::bail!("kernels here have one or two bindings"),
                };
            }
            Step::Copy { from, to } => {
                batch.copy(&self.slice(*from)?, &self.slice(*to)?)?;
            }
        }
        Ok(())
    }
}

fn launch([x, y]: [u32; 2], immediate: Option<f32>) -> Launch {
    let launch = Launch::workgroups([x, y, 1]);
    match immediate {
        Some(value) => launch.immediate_bytes(value.to_ne_bytes()),
        None => launch,
    }
}

impl Peer for Scry {
    fn name(&self) -> &'static str {
        "scry-gpu"
    }

    fn compile(&mut self, wgsl: &str) -> Result<KernelId> {
        Ok(KernelId(self.kernels.add(self.device.compile(wgsl)?)))
    }

    fn upload(&mut self, data: &[f32]) -> Result<BufferId> {
        let buffer = self.device.upload(data)?;
        self.device.wait()?;
        Ok(BufferId(self.buffers.add(buffer)))
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(buffer.0);
    }

    fn clear(&mut self) {
        self.plans = Table::default();
        self.buffers = Table::default();
    }

    fn write(&mut self, buffer: BufferId, data: &[f32]) -> Result<Option<()>> {
        self.buffers.get(buffer.0).write(data)?;
        self.device.wait()?;
        Ok(Some(()))
    }

    fn read_into(&mut self, buffer: BufferId, out: &mut [f32]) -> Result<Option<()>> {
        self.buffers.get(buffer.0).download_into(out)?;
        Ok(Some(()))
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>> {
        Ok(self.buffers.get(buffer.0).download()?)
    }

    fn plan(&mut self, steps: &[Step], _chained: bool) -> Result<Option<PlanId>> {
        let plan = Plan { steps: steps.to_vec(), recording: None };
        Ok(Some(PlanId(self.plans.add(plan))))
    }

    fn run(&mut self, plan: PlanId) -> Result<()> {
        // One launch is `Device::run`, not a batch of one.
        let [Step::Launch { kernel, bindings, groups, immediate }] =
            self.plans.get(plan.0).steps.as_slice()
        else {
            return Ok(self.batch(plan)?.submit()?);
        };
        let (kernel, launch) = (self.kernels.get(kernel.0), launch(*groups, *immediate));
        match **bindings {
            [a] => self.device.run(kernel, &[&self.slice(a)?], launch)?,
            _ => return Ok(self.batch(plan)?.submit()?),
        }
        Ok(self.device.wait()?)
    }

    fn record(&mut self, plan: PlanId) -> Result<HostTime> {
        let start = thread_time();
        let ticket = self.batch(plan)?.submit_async()?;
        let submit = thread_time() - start;
        ticket.wait()?;
        // Recording happens as part of submission.
        Ok(HostTime { record: submit, submit })
    }

    fn replay(&mut self, plan: PlanId) -> Result<Option<Duration>> {
        if self.plans.get(plan.0).recording.is_none() {
            let recording = self.batch(plan)?.record()?;
            self.plans.get_mut(plan.0).recording = Some(recording);
        }
        let recording = self.plans.get(plan.0).recording.as_ref();
        let recording = recording.expect("it was recorded above");
        let start = thread_time();
        let ticket = recording.replay()?;
        let elapsed = thread_time() - start;
        ticket.wait()?;
        Ok(Some(elapsed))
    }
}
