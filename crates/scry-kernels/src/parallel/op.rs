//! Prepared layers.

use std::fmt;
use std::sync::Arc;

use scry_gpu::{
    ArgumentError, Batch, Device, DeviceGroup, GpuError, GroupTransport, ReduceOp, Result,
    UntypedBuffer,
};

use crate::call::Call;
use crate::explanation::Explanation;
use crate::op::Op;

/// A layer that the ranks of a group compute together, checked and compiled: run it as often as you
/// like, on all ranks.
///
/// It owns the buffers that it uses, but not the group. It is cheap to clone.
#[derive(Clone)]
#[must_use = "nothing is computed until it is run or added to a batch"]
pub struct ParallelOp {
    pub(super) call: Call,
    pub(super) device: Device,
    pub(super) rank: usize,
    pub(super) world_size: usize,
    pub(super) steps: Arc<[Step]>,
    /// Which variant computes the product.
    pub(super) explanation: Explanation,
}

/// What a rank does, in order.
#[derive(Debug)]
pub(super) enum Step {
    Compute(Op),
    AllReduce(UntypedBuffer),
    AllGather { source: UntypedBuffer, destination: UntypedBuffer },
    ReduceScatter { source: UntypedBuffer, destination: UntypedBuffer },
}

impl ParallelOp {
    /// Computes the layer with the other ranks, which make the same call; reads of the results wait
    /// for it. Through NCCL, it returns before the layer is computed.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    /// use scry_kernels::{Kernels, RowParallelLinear};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let gpu = group.device();
    ///     let (x, weight) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
    ///     let out = gpu.alloc::<f32>(1)?;
    ///     let layer = RowParallelLinear::new(1, 4, 1); // two of the features on each rank
    ///     let kernels = Kernels::new(gpu)?;
    ///     kernels.row_parallel_linear(group, &layer, &[&x, &weight, &out])?.run(group)?;
    ///     out.get(0)
    /// })?;
    /// assert_eq!(results, [22.0, 22.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] if `group` is not the rank that it was prepared for; those of
    /// [`Op::run`] and of [`DeviceGroup::all_reduce`].
    pub fn run(&self, group: &DeviceGroup) -> Result<()> {
        const NAME: &str = "ParallelOp::run";
        self.check_group(NAME, group)?;
        let run = || {
            if group.transport() == GroupTransport::Nccl {
                let mut batch = self.device.batch();
                self.append(&mut batch, group)?;
                return batch.submit_async().map(|_| ());
            }
            self.steps.iter().try_for_each(|step| step.run(group))
        };
        run().map_err(|error| self.with_call(NAME, error))
    }

    /// Adds the layer to a batch, with its collectives. All ranks submit the batch, or replay its
    /// recording.
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    /// use scry_kernels::{Kernels, RowParallelLinear};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let (x, weight) = (gpu.upload(&[1.0f32, 2.0])?, gpu.upload(&[3.0f32, 4.0])?);
    /// let out = gpu.alloc::<f32>(1)?;
    /// let layer = RowParallelLinear::new(1, 4, 1);
    /// let layer = Kernels::new(&gpu)?.row_parallel_linear(&group, &layer, &[&x, &weight, &out])?;
    /// let mut batch = gpu.batch();
    /// layer.add_to(&mut batch, &group)?;
    /// batch.record()?.replay()?.wait()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] if `group` is not the rank that it was prepared for, or if a group of
    /// several ranks does not use NCCL ([`DeviceGroup::transport`]); those of [`Op::add_to`].
    /// The batch may then have a part of the commands.
    pub fn add_to(&self, batch: &mut Batch, group: &DeviceGroup) -> Result<()> {
        const NAME: &str = "ParallelOp::add_to";
        self.check_group(NAME, group)?;
        if self.has_collectives() && group.transport() != GroupTransport::Nccl {
            let problem = format!(
                "uses host memory ({}), and only collectives by NCCL can be in a batch",
                group.transport_reason()
            );
            let help = "call ParallelOp::run between two batches, or install NCCL on all ranks";
            return Err(self.group_error(NAME, problem, help));
        }
        self.append(batch, group).map_err(|error| self.with_call(NAME, error))
    }

    /// Returns which variant computes the product of this rank, and why.
    #[must_use]
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }

    fn append(&self, batch: &mut Batch, group: &DeviceGroup) -> Result<()> {
        self.steps.iter().try_for_each(|step| step.add_to(batch, group))
    }

    fn has_collectives(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Compute(_)))
    }

    /// Checks that the group is the one that the operation was prepared for, or an equal one.
    fn check_group(&self, function: &str, group: &DeviceGroup) -> Result<()> {
        let (rank, world_size) = (group.rank(), group.world_size());
        let problem = if (rank, world_size) != (self.rank, self.world_size) {
            format!(
                "is rank {rank} of {world_size}, but the layer was prepared for rank {} of {}",
                self.rank, self.world_size
            )
        } else if *group.device() != self.device {
            "has another device than the layer was prepared for".to_owned()
        } else {
            return Ok(());
        };
        Err(self.group_error(function, problem, "pass the DeviceGroup that it was prepared with"))
    }

    fn group_error(&self, function: &str, problem: String, help: &str) -> GpuError {
        let function = format!("{function} of {}", self.call.description());
        GpuError::Argument(ArgumentError::new(&function, "`group`", problem, help))
    }

    /// Names the functions that the program called.
    fn with_call(&self, function: &str, error: GpuError) -> GpuError {
        error.in_function(format!("{function} of {}", self.call.description()))
    }
}

impl Step {
    fn run(&self, group: &DeviceGroup) -> Result<()> {
        match self {
            Self::Compute(op) => op.run(),
            Self::AllReduce(buffer) => group.all_reduce(buffer, buffer, ReduceOp::Sum),
            Self::AllGather { source, destination } => group.all_gather(source, destination),
            Self::ReduceScatter { source, destination } => {
                group.reduce_scatter(source, destination, ReduceOp::Sum)
            }
        }
    }

    fn add_to(&self, batch: &mut Batch, group: &DeviceGroup) -> Result<()> {
        match self {
            Self::Compute(op) => return op.add_to(batch),
            Self::AllReduce(buffer) => batch.all_reduce(group, buffer, buffer, ReduceOp::Sum)?,
            Self::AllGather { source, destination } => {
                batch.all_gather(group, source, destination)?
            }
            Self::ReduceScatter { source, destination } => {
                batch.reduce_scatter(group, source, destination, ReduceOp::Sum)?
            }
        };
        Ok(())
    }
}

impl fmt::Debug for ParallelOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelOp")
            .field("call", &self.call.description())
            .field("rank", &self.rank)
            .field("world_size", &self.world_size)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
