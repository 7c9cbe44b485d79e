//! Collectives in batches and recordings.

use super::collectives::Side;
use super::device_group::DeviceGroup;
use super::nccl::Nccl;
use crate::api::batch::Batch;
use crate::api::elements::Elements;
use crate::api::error::{ArgumentError, GpuError, InFunction, Result};
use crate::api::reduce_op::ReduceOp;
use crate::core::collective::Operation;
use crate::core::same_device::same_device;

/// Collectives of a group whose [`DeviceGroup::transport`] is
/// [`GroupTransport::Nccl`](crate::GroupTransport::Nccl). All ranks submit the same collectives in
/// the same order, in batches, recordings or single calls. The first of each operation, element
/// type and size class (powers of two) must be made in the same way on all ranks: as a single call,
/// or in batches that contain the same collectives.
///
/// All return what the methods of [`DeviceGroup`] with the same names return, and
/// [`GpuError::Argument`] for groups with another transport and for means of integers.
impl Batch {
    /// Adds an all-reduce: see [`DeviceGroup::all_reduce`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership, ReduceOp};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let mut batch = gpu.batch();
    /// batch.all_reduce(&group, &x, &x, ReduceOp::Sum)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::all_reduce`]; [`GpuError::Argument`] if the group does not use NCCL, and
    /// for means of integers.
    pub fn all_reduce<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
        op: ReduceOp,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::all_reduce";
        self.exchange(NAME, group, Operation::AllReduce(op), (&source, &destination))
    }

    /// Adds a broadcast: see [`DeviceGroup::broadcast`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let mut batch = gpu.batch();
    /// batch.broadcast(&group, &x, &x, 0)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::broadcast`]; [`GpuError::Argument`] if the group does not use NCCL.
    pub fn broadcast<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
        root: usize,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::broadcast";
        group.check_rank(NAME, "`root`", root)?;
        self.exchange(NAME, group, Operation::Broadcast { root }, (&source, &destination))
    }

    /// Adds a reduction to one rank: see [`DeviceGroup::reduce`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership, ReduceOp};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let mut batch = gpu.batch();
    /// batch.reduce(&group, &x, &x, ReduceOp::Max, 0)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::reduce`]; [`GpuError::Argument`] if the group does not use NCCL, and for
    /// means of integers.
    pub fn reduce<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
        op: ReduceOp,
        root: usize,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::reduce";
        group.check_rank(NAME, "`root`", root)?;
        self.exchange(NAME, group, Operation::Reduce { op, root }, (&source, &destination))
    }

    /// Adds an all-gather: see [`DeviceGroup::all_gather`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let y = gpu.alloc::<f32>(2)?;
    /// let mut batch = gpu.batch();
    /// batch.all_gather(&group, x.slice(..1)?, &y)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::all_gather`]; [`GpuError::Argument`] if the group does not use NCCL.
    pub fn all_gather<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::all_gather";
        self.exchange(NAME, group, Operation::AllGather, (&source, &destination))
    }

    /// Adds a reduce-scatter: see [`DeviceGroup::reduce_scatter`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership, ReduceOp};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let y = gpu.alloc::<f32>(2)?;
    /// let mut batch = gpu.batch();
    /// batch.reduce_scatter(&group, &x, y.slice(..1)?, ReduceOp::Sum)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::reduce_scatter`]; [`GpuError::Argument`] if the group does not use NCCL,
    /// and for means of integers.
    pub fn reduce_scatter<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
        op: ReduceOp,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::reduce_scatter";
        self.exchange(NAME, group, Operation::ReduceScatter(op), (&source, &destination))
    }

    /// Adds an all-to-all: see [`DeviceGroup::all_to_all`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let y = gpu.alloc::<f32>(2)?;
    /// let mut batch = gpu.batch();
    /// batch.all_to_all(&group, &x, &y)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::all_to_all`]; [`GpuError::Argument`] if the group does not use NCCL.
    pub fn all_to_all<S: Elements, D: Elements<Kind = S::Kind>>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        destination: D,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::all_to_all";
        self.exchange(NAME, group, Operation::AllToAll, (&source, &destination))
    }

    /// Adds a send: see [`DeviceGroup::send`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let mut batch = gpu.batch();
    /// batch.send(&group, &x, 1)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::send`]; [`GpuError::Argument`] if the group does not use NCCL.
    pub fn send<S: Elements>(
        &mut self,
        group: &DeviceGroup,
        source: S,
        to: usize,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::send";
        group.check_peer(NAME, "`to`", to)?;
        let source = Side::new("source", &source);
        self.collective(NAME, group, Operation::Send { to }, (Some(source), None))
    }

    /// Adds a receive: see [`DeviceGroup::recv`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, Membership};
    ///
    /// // One of two processes, started by `scry launch`.
    /// let membership = Membership::from_env()?;
    /// let gpu = Device::open(&format!("cuda:{}", membership.local_rank()))?;
    /// let group = membership.join(&gpu)?;
    /// let x = gpu.upload(&[1.0f32, 2.0])?;
    /// let mut batch = gpu.batch();
    /// batch.recv(&group, &x, 0)?.submit()?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::recv`]; [`GpuError::Argument`] if the group does not use NCCL.
    pub fn recv<D: Elements>(
        &mut self,
        group: &DeviceGroup,
        destination: D,
        from: usize,
    ) -> Result<&mut Self> {
        const NAME: &str = "Batch::recv";
        group.check_peer(NAME, "`from`", from)?;
        let destination = Side::new("destination", &destination);
        self.collective(NAME, group, Operation::Recv { from }, (None, Some(destination)))
    }

    /// Adds a collective that has a source and a destination on every rank.
    fn exchange<S: Elements, D: Elements>(
        &mut self,
        function: &'static str,
        group: &DeviceGroup,
        operation: Operation,
        (source, destination): (&S, &D),
    ) -> Result<&mut Self> {
        let source = Side::new("source", source);
        let destination = Side::new("destination", destination);
        self.collective(function, group, operation, (Some(source), Some(destination)))
    }

    fn collective(
        &mut self,
        function: &'static str,
        group: &DeviceGroup,
        operation: Operation,
        (source, destination): (Option<Side<'_>>, Option<Side<'_>>),
    ) -> Result<&mut Self> {
        same_device(&self.context, (&group.device().context, ""), function, || {
            "the group".to_owned()
        })?;
        let (call, views) = group.checked(function, operation, source, destination)?;
        let reject = |problem: String, help: &str| {
            Err(GpuError::Argument(ArgumentError::new(function, "`group`", problem, help)))
        };
        let Some(nccl) = &group.nccl else {
            return reject(
                format!(
                    "uses host memory ({}), and only collectives by NCCL can be in a batch",
                    group.transport_reason()
                ),
                "call the method of DeviceGroup between two batches, or install NCCL on all ranks",
            );
        };
        if !Nccl::executes(&call) {
            return reject(
                format!("executes {call} through host memory, which a batch cannot"),
                "call the method of DeviceGroup between two batches",
            );
        }
        self.add(|_, list| nccl.append(function, &call, views, list).in_function(function))
    }
}
