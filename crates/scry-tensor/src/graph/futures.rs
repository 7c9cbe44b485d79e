//! Async forms of functions of graphs and plans.
//!
//! Arguments are checked when a function is called. Its future owns what it needs, holds no lock
//! while it waits, and submits all commands of a run in one poll.

use std::sync::Arc;

use super::Graph;
use super::bound_plan::BoundPlan;
use super::compiled::Plan;
use super::explain::PlanReport;
use super::numerics::LargeResult;
use crate::error::{Call, Result};
use crate::stored::Stored;
use crate::tensor::Tensor;
use crate::waiting::Waiting;

/// Compiling without blocking a thread.
impl Graph {
    /// Async form of [`compile`](Self::compile): the nodes are those that are recorded when it is
    /// called; kernels are compiled on another thread, or in the first poll where there are no
    /// threads. A compilation that has begun continues after the future is dropped.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.relu()?]).await?;
    /// let x = Tensor::new_async([-1.0f32, 1.0], &gpu).await?;
    /// let out = plan.run_async(&[("x", &x)]).await?;
    /// assert_eq!(out[0].to_vec_async::<f32>().await?, [0.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Graph::compile`].
    #[track_caller]
    pub fn compile_async(&self, outputs: &[Tensor]) -> impl Future<Output = Result<Plan>> + use<> {
        let plan = self.compiled(Call::new("Graph::compile_async"), outputs, None);
        async move { plan?.ready(Waiting::Awaiting).await }
    }

    /// Async form of [`compile_sharing`](Self::compile_sharing).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let first = g.compile_async(&[count.read()]).await?;
    /// let second = g.compile_sharing_async(&[count.read()], &first).await?;
    /// first.run_async(&[]).await?;
    /// let out = second.run_async(&[]).await?;
    /// assert_eq!(out[0].item_async::<f32>().await?, 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Graph::compile_sharing`].
    #[track_caller]
    pub fn compile_sharing_async(
        &self,
        outputs: &[Tensor],
        other: &Plan,
    ) -> impl Future<Output = Result<Plan>> + use<> {
        let call = Call::new("Graph::compile_sharing_async");
        let plan = self.compiled(call, outputs, Some(other));
        async move { plan?.ready(Waiting::Awaiting).await }
    }
}

/// Running without blocking a thread.
impl Plan {
    /// Returns the plan again, and the inputs of a run.
    fn with_inputs(
        &self,
        call: Call,
        inputs: &[(&str, &Tensor)],
    ) -> Result<(Self, Vec<Arc<Stored>>)> {
        Ok((self.share(), self.inputs(call, inputs)?))
    }

    /// Async form of [`run`](Self::run): completes once the run is submitted. It waits where `run`
    /// blocks: until kernels for new sizes are compiled, and the device accepts a submission.
    /// Nothing is submitted if the future is dropped before.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.exp()?]).await?;
    /// let x = Tensor::new_async([0.0f32, 0.0], &gpu).await?;
    /// let out = plan.run_async(&[("x", &x)]).await?;
    /// assert_eq!(out[0].to_vec_async::<f32>().await?, [1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::run`].
    #[track_caller]
    pub fn run_async(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> impl Future<Output = Result<Vec<Tensor>>> + use<> {
        let call = Call::new("Plan::run_async");
        let given = self.with_inputs(call, inputs);
        async move {
            let (plan, inputs) = given?;
            plan.run_by(call, &inputs, Waiting::Awaiting).await
        }
    }

    /// Async form of [`bind`](Self::bind).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let bound = g.compile_async(&[count.read()]).await?.bind_async(&[]).await?;
    /// bound.run_async().await?;
    /// bound.run_times_async(9).await?;
    /// assert_eq!(bound.outputs()[0].item_async::<f32>().await?, 10.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::bind`].
    #[track_caller]
    pub fn bind_async(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> impl Future<Output = Result<BoundPlan>> + use<> {
        let call = Call::new("Plan::bind_async");
        let given = self.with_inputs(call, inputs);
        async move {
            let (plan, inputs) = given?;
            let device = plan.device().clone();
            let bind = move || plan.bind_stored(call, &inputs);
            Waiting::Awaiting.compile(call, &device, bind).await
        }
    }

    /// Async form of [`check`](Self::check). The plan runs, and its states are restored, in one
    /// poll: they are as before if the future is dropped.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.exp()?]).await?;
    /// let x = Tensor::new_async([0.0f32, 1.0], &gpu).await?;
    /// assert_eq!(plan.check_async(&[("x", &x)]).await?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::check`].
    #[track_caller]
    pub fn check_async(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> impl Future<Output = Result<usize>> + use<> {
        let call = Call::new("Plan::check_async");
        let given = self.with_inputs(call, inputs);
        async move {
            let (plan, inputs) = given?;
            plan.check_by(call, &inputs, Waiting::Awaiting).await
        }
    }

    /// Async form of [`run_checked`](Self::run_checked).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, ErrorKind, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.log()?]).await?;
    /// let x = Tensor::new_async([1.0f32, -1.0], &gpu).await?;
    /// let error = plan.run_checked_async(&[("x", &x)]).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotANumber);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::run_checked`].
    #[track_caller]
    pub fn run_checked_async(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> impl Future<Output = Result<Vec<Tensor>>> + use<> {
        let call = Call::new("Plan::run_checked_async");
        let given = self.with_inputs(call, inputs);
        async move {
            let (plan, inputs) = given?;
            plan.run_checked_by(call, &inputs, Waiting::Awaiting).await
        }
    }

    /// Async form of [`audit_f16`](Self::audit_f16).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.square()?]).await?;
    /// let x = Tensor::new_async([1.0f32, 300.0], &gpu).await?;
    /// assert_eq!(plan.audit_f16_async(&[("x", &x)]).await?[0].op, "Tensor::square");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::audit_f16`].
    #[track_caller]
    pub fn audit_f16_async(
        &self,
        inputs: &[(&str, &Tensor)],
    ) -> impl Future<Output = Result<Vec<LargeResult>>> + use<> {
        let call = Call::new("Plan::audit_f16_async");
        let given = self.with_inputs(call, inputs);
        async move {
            let (plan, inputs) = given?;
            plan.audit_f16_by(call, &inputs, Waiting::Awaiting).await
        }
    }

    /// Async form of [`explain`](Self::explain).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.exp()?]).await?;
    /// assert_eq!(plan.explain_async().await?.kernels.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::explain`].
    #[track_caller]
    pub fn explain_async(&self) -> impl Future<Output = Result<PlanReport>> + use<> {
        let (call, plan) = (Call::new("Plan::explain_async"), self.share());
        async move {
            let sizes = plan.shared().graph.largest_sizes();
            plan.specialised_by(call, sizes, Waiting::Awaiting).await?;
            plan.explain()
        }
    }

    /// Async form of [`to_dot`](Self::to_dot).
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let plan = g.compile_async(&[g.input("x", [2])?.exp()?]).await?;
    /// assert!(plan.to_dot_async().await?.starts_with("digraph plan {"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Plan::explain`].
    #[track_caller]
    pub fn to_dot_async(&self) -> impl Future<Output = Result<String>> + use<> {
        let (call, plan) = (Call::new("Plan::to_dot_async"), self.share());
        async move {
            let sizes = plan.shared().graph.largest_sizes();
            plan.specialised_by(call, sizes, Waiting::Awaiting).await?;
            plan.to_dot()
        }
    }
}

/// Running without blocking a thread.
impl BoundPlan {
    /// Async form of [`run`](Self::run), which blocks while 256 submissions are unfinished:
    /// completes once the run is submitted.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let bound = g.compile_async(&[count.read()]).await?.bind_async(&[]).await?;
    /// for _ in 0..1000 {
    ///     bound.run_async().await?;
    /// }
    /// assert_eq!(bound.outputs()[0].item_async::<f32>().await?, 1000.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`BoundPlan::run`].
    #[track_caller]
    pub fn run_async(&self) -> impl Future<Output = Result<()>> + use<'_> {
        let call = Call::new("BoundPlan::run_async");
        Waiting::Awaiting.submit(call, self.device(), move || self.submit(call))
    }

    /// Async form of [`run_times`](Self::run_times): see [`BoundPlan::run_async`]. A dropped future
    /// has submitted some of the runs, the first ones.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use scry_tensor::{Device, Graph};
    ///
    /// let g = Graph::new(&Device::open("cpu")?)?;
    /// let count = g.state("count", [1])?;
    /// count.write(.., &count.read().add(1.0)?)?;
    /// let bound = g.compile_async(&[count.read()]).await?.bind_async(&[]).await?;
    /// bound.run_times_async(10).await?;
    /// assert_eq!(bound.outputs()[0].item_async::<f32>().await?, 10.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`BoundPlan::run_times`].
    #[track_caller]
    pub fn run_times_async(&self, count: usize) -> impl Future<Output = Result<()>> + use<'_> {
        let call = Call::new("BoundPlan::run_times_async");
        self.run_times_by(call, count, Waiting::Awaiting)
    }
}
