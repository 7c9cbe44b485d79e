//! scry-gpu 0.1.0, the predecessor, on Vulkan.

use std::time::Duration;

use anyhow::{Result, ensure};
use scry_gpu_01::{BackendKind, Batch, Buffer, Device, GpuBuf, Kernel, Result as Result01};

use super::{BufferId, HostTime, KernelId, Peer, PlanId, Span, Step, Table};
use crate::stats::thread_time;

/// One device and its objects.
pub struct Scry01 {
    // Dropped in this order: the device last.
    plans: Table<Plan>,
    buffers: Table<Buffer<f32>>,
    kernels: Table<Kernel>,
    device: Device,
}

struct Plan {
    steps: Vec<Step>,
    chained: bool,
}

impl Scry01 {
    /// Opens the device that the library picks, which must be the one called `name`.
    pub fn open(name: &str) -> Result<Self> {
        let device = Device::with_backend(BackendKind::Vulkan)?;
        let found = device.name();
        ensure!(found == name, "scry-gpu 0.1 picks `{found}`, the others use `{name}`");
        let (kernels, buffers, plans) = Default::default();
        Ok(Self { plans, buffers, kernels, device })
    }

    /// Returns whether the library supports a step: it only binds whole buffers, and has no copies.
    fn supports(&self, step: &Step) -> bool {
        let is_whole =
            |span: &Span| span.start == 0 && span.len == self.buffers.get(span.buffer.0).len();
        match step {
            Step::Launch { bindings, .. } => bindings.iter().all(is_whole),
            Step::Copy { .. } => false,
        }
    }

    fn batch(&self, plan: PlanId) -> Result<Batch> {
        let Plan { steps, chained } = self.plans.get(plan.0);
        let mut batch = self.device.batch()?;
        for (index, step) in steps.iter().enumerate() {
            if *chained && index > 0 {
                batch.barrier();
            }
            self.launch(step, |kernel, buffers, groups, immediate| {
                batch.run_configured(kernel, buffers, groups, immediate).map(|_| ())
            })?;
        }
        Ok(batch)
    }

    fn launch(
        &self,
        step: &Step,
        launch: impl FnOnce(&Kernel, &[&dyn GpuBuf], [u32; 3], Option<&[u8]>) -> Result01<()>,
    ) -> Result<()> {
        let Step::Launch { kernel, bindings, groups: [x, y], immediate } = step else {
            anyhow::bail!("scry-gpu 0.1 copies nothing between existing buffers");
        };
        let kernel = self.kernels.get(kernel.0);
        let immediate = immediate.as_ref().map(bytemuck::bytes_of);
        let buffer = |span: Span| self.buffers.get(span.buffer.0);
        match **bindings {
            [a] => launch(kernel, &[buffer(a)], [*x, *y, 1], immediate)?,
            [a, b] => launch(kernel, &[buffer(a), buffer(b)], [*x, *y, 1], immediate)?,
            _ => anyhow::bail!("kernels here have one or two bindings"),
        }
        Ok(())
    }
}

impl Peer for Scry01 {
    fn name(&self) -> &'static str {
        "scry-gpu-0.1"
    }

    fn compile(&mut self, wgsl: &str) -> Result<KernelId> {
        // The name that immediates had in the WGSL of its time.
        let wgsl = wgsl.replace("var<immediate>", "var<push_constant>");
        Ok(KernelId(self.kernels.add(self.device.compile(&wgsl)?)))
    }

    fn upload(&mut self, data: &[f32]) -> Result<BufferId> {
        Ok(BufferId(self.buffers.add(self.device.upload(data)?)))
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(buffer.0);
    }

    fn clear(&mut self) {
        self.plans = Table::default();
        self.buffers = Table::default();
    }

    fn write(&mut self, _buffer: BufferId, _data: &[f32]) -> Result<Option<()>> {
        Ok(None)
    }

    fn read_into(&mut self, _buffer: BufferId, _out: &mut [f32]) -> Result<Option<()>> {
        Ok(None)
    }

    fn read(&mut self, buffer: BufferId) -> Result<Vec<f32>> {
        Ok(self.buffers.get(buffer.0).download()?)
    }

    fn plan(&mut self, steps: &[Step], chained: bool) -> Result<Option<PlanId>> {
        if !steps.iter().all(|step| self.supports(step)) {
            return Ok(None);
        }
        let plan = Plan { steps: steps.to_vec(), chained };
        Ok(Some(PlanId(self.plans.add(plan))))
    }

    fn run(&mut self, plan: PlanId) -> Result<()> {
        match self.plans.get(plan.0).steps.as_slice() {
            [one] => self.launch(one, |kernel, buffers, groups, immediate| {
                self.device.run_configured(kernel, buffers, groups, immediate)
            }),
            _ => Ok(self.batch(plan)?.submit()?),
        }
    }

    fn record(&mut self, plan: PlanId) -> Result<HostTime> {
        let start = thread_time();
        let batch = self.batch(plan)?;
        let record = thread_time() - start;
        let ticket = batch.submit_async()?;
        let submit = thread_time() - start;
        ticket.wait()?;
        Ok(HostTime { record, submit })
    }

    fn replay(&mut self, _plan: PlanId) -> Result<Option<Duration>> {
        Ok(None)
    }
}
