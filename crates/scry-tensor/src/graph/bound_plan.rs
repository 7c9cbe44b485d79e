//! Plans with fixed inputs and outputs, whose runs only replay a recording.

use std::fmt;
use std::sync::Arc;

use scry_gpu::Device;

use super::compiled::Plan;
use super::specialised::BoundRun;
use crate::error::{Call, Result};
use crate::stored::Stored;
use crate::tensor::Tensor;
use crate::waiting::{Waiting, now};

/// The most runs in one submission: those that wait in the driver make it block.
const MAX_RUNS: usize = 64;

/// A [`Plan`] with fixed inputs, recorded for repeated runs: see [`Plan::bind`].
///
/// It keeps what it uses: the plan can be dropped. Its states are those of the plan, as is its
/// memory: runs of both are executed one after the other, in the order of their calls.
///
/// ```
/// use scry_tensor::{BoundPlan, Device, Graph, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let x = g.input("x", [2])?;
/// let data = Tensor::new([1.0f32, 2.0], &gpu)?;
/// let bound: BoundPlan = g.compile(&[x.square()?])?.bind(&[("x", &data)])?;
/// bound.run()?;
/// assert_eq!(bound.outputs()[0].to_vec::<f32>()?, [1.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is computed until it is run"]
pub struct BoundPlan {
    device: Device,
    run: BoundRun,
    outputs: Vec<Tensor>,
}

impl Plan {
    /// Records a run of inputs, for loops: [`BoundPlan::run`] submits it again, and the time of the
    /// host is that of one call of the driver, however many kernels there are. Input that changes
    /// from run to run belongs in a [`State`](crate::State), which the plan itself advances.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let position = g.state_with_dtype("position", [1], DType::U32)?;
    /// let row = g.input("table", [4, 2])?.index_select(0, &position.read())?;
    /// position.write(.., &position.read().add(1u32)?)?;
    /// let plan = g.compile(&[row])?;
    ///
    /// let table = Tensor::new([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], &gpu)?;
    /// let bound = plan.bind(&[("table", &table)])?;
    /// for n in 0..4 {
    ///     bound.run()?;
    ///     let first = (2 * n + 1) as f32;
    ///     assert_eq!(bound.outputs()[0].to_vec::<f32>()?, [first, first + 1.0]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Plan::run`].
    #[doc(alias("cudaGraph", "CUDAGraph"))]
    #[track_caller]
    pub fn bind(&self, inputs: &[(&str, &Tensor)]) -> Result<BoundPlan> {
        let call = Call::new("Plan::bind");
        self.bind_stored(call, &self.inputs(call, inputs)?)
    }

    /// Records a run of inputs in the order of the graph.
    pub(super) fn bind_stored(&self, call: Call, inputs: &[Arc<Stored>]) -> Result<BoundPlan> {
        let specialised = self.specialised(&self.sizes(call, inputs)?)?;
        let is_packed = inputs.iter().all(|input| input.is_packed());
        let mut batch = self.device().batch();
        let mut packed = Vec::with_capacity(inputs.len());
        for input in inputs {
            packed.push(self.packed(call, &mut batch, input)?);
        }
        let target = self.shared().target();
        let (run, outputs) = specialised.bind(target, call, (batch, is_packed), &packed)?;
        let outputs = outputs.into_iter().map(Tensor::from).collect();
        Ok(BoundPlan { device: self.device().clone(), run, outputs })
    }
}

impl BoundPlan {
    /// Submits a run, without waiting for it. It overwrites the elements of
    /// [`outputs`](Self::outputs), after the operations on them that were submitted before.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let plan = g.compile(&[count.read()])?;
    /// let bound = plan.bind(&[])?;
    /// for _ in 0..10 {
    ///     bound.run()?;
    /// }
    /// assert_eq!(plan.state("count")?.item::<f32>()?, 10.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn run(&self) -> Result<()> {
        self.submit(Call::new("BoundPlan::run"))
    }

    pub(super) fn submit(&self, call: Call) -> Result<()> {
        self.run.submit(&self.device).map_err(|error| call.gpu(error))
    }

    /// Submits several runs, one after the other and up to 64 in one submission, without waiting
    /// for them: for plans that advance their states. [`outputs`](Self::outputs) has the elements
    /// of the last one.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let plan = g.compile(&[count.read()])?;
    /// let bound = plan.bind(&[])?;
    /// bound.run_times(10)?;
    /// assert_eq!(bound.outputs()[0].item::<f32>()?, 10.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn run_times(&self, count: usize) -> Result<()> {
        now(self.run_times_by(Call::new("BoundPlan::run_times"), count, Waiting::Blocking))
    }

    /// Submits several runs, in parts that are one submission each.
    pub(super) async fn run_times_by(
        &self,
        call: Call,
        count: usize,
        waiting: Waiting,
    ) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let runs = left.min(MAX_RUNS);
            let submit = || -> scry_gpu::Result<()> {
                let mut batch = self.device.batch();
                (0..runs).try_for_each(|_| self.run.add_to(&mut batch))?;
                batch.submit_async().map(drop)
            };
            let submit = || submit().map_err(|error| call.gpu(error));
            waiting.submit(call, &self.device, submit).await?;
            left -= runs;
        }
        Ok(())
    }

    /// Returns the outputs, in the order of [`Graph::compile`](crate::Graph::compile). Their
    /// elements are those of the latest run, and zero before the first: operations on them compute
    /// with the elements at that time. Clones and views, such as [`Tensor::reshape`], share the
    /// memory, so that the next run overwrites their elements, too. An unfinished
    /// [`Tensor::to_vec_async`] has the elements of one run: await it before the next run if they
    /// must be those of the run before.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile(&[g.input("x", [2])?.exp()?])?;
    /// let bound = plan.bind(&[("x", &Tensor::new([0.0f32, 1.0], &gpu)?)])?;
    /// let y = &bound.outputs()[0];
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0]);
    /// bound.run()?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, std::f32::consts::E]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn outputs(&self) -> &[Tensor] {
        &self.outputs
    }
}

impl fmt::Debug for BoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundPlan")
            .field("device", &self.device.name())
            .field("outputs", &self.outputs.len())
            .finish_non_exhaustive()
    }
}

impl BoundPlan {
    /// Returns the device.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }
}
