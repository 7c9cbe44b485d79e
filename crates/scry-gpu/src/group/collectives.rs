//! The collectives: their checks, and their description as data.

use super::device_group::DeviceGroup;
use super::fault::Fault;
use super::host_memory::Views;
use super::nccl::Nccl;
use crate::api::binding::View;
use crate::api::dtype::DType;
use crate::api::elements::Elements;
use crate::api::error::{ArgumentError, BufferAccessError, GpuError, InFunction, Result};
use crate::api::reduce_op::ReduceOp;
use crate::api::untyped_buffer::check_same_elements;
use crate::core::collective::{Call, Operation, is_supported};
use crate::core::same_device::same_device;

/// The collectives. Each is called by all ranks, with elements of type `f32`, `f64`, `f16`, `bf16`,
/// `i32`, `u32`, `i64`, `u64` or `u8`, in buffers or slices of the group's [`DeviceGroup::device`].
///
/// All return [`GpuError::BufferAccess`] for lengths that do not match or buffers that overlap
/// other than stated, [`GpuError::Argument`] for other element types and ranks outside of the
/// group, [`GpuError::WrongDevice`], failures of the device, and [`GpuError::Group`] if another
/// rank fails or makes a different call.
impl DeviceGroup {
    /// Reduces the source buffers of all ranks element by element with `op`, and stores the result
    /// on every rank. All ranks receive the same bits.
    ///
    /// The buffers have the same length, and may be the same.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup, ReduceOp};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let (x, y) = ([1.0f32, 10.0], [5.0, 2.0]);
    ///     let x = group.device().upload(if group.rank() == 0 { &x } else { &y })?;
    ///     let max = group.device().alloc::<f32>(2)?;
    ///     group.all_reduce(&x, &max, ReduceOp::Max)?;
    ///     max.download()
    /// })?;
    /// assert_eq!(results, [[5.0, 10.0], [5.0, 10.0]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type; [`GpuError::Group`] if another rank
    /// fails or makes a different call; as all collectives.
    #[doc(alias("ncclAllReduce", "MPI_Allreduce"))]
    pub fn all_reduce<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
        op: ReduceOp,
    ) -> Result<()> {
        let operation = Operation::AllReduce(op);
        self.exchange("DeviceGroup::all_reduce", operation, source, destination)
    }

    /// Copies the source of rank `root` to the destination of every rank.
    ///
    /// The buffers have the same length, and may be the same. The source of the other ranks is not
    /// read.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let weights = group.device().upload(&[group.rank() as f32; 2])?;
    ///     group.broadcast(&weights, &weights, 1)?;
    ///     weights.download()
    /// })?;
    /// assert_eq!(results, [[1.0, 1.0], [1.0, 1.0]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type or a rank outside of the group;
    /// [`GpuError::Group`] if another rank fails or makes a different call; as all collectives.
    #[doc(alias("ncclBroadcast", "MPI_Bcast"))]
    pub fn broadcast<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
        root: usize,
    ) -> Result<()> {
        const NAME: &str = "DeviceGroup::broadcast";
        self.check_rank(NAME, "`root`", root)?;
        self.exchange(NAME, Operation::Broadcast { root }, source, destination)
    }

    /// Reduces the source buffers of all ranks element by element with `op`, and stores the result
    /// on rank `root` only.
    ///
    /// The buffers have the same length, and may be the same. The destination of the other ranks is
    /// not changed.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup, ReduceOp};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let x = group.device().upload(&[3u32, 4])?;
    ///     group.reduce(&x, &x, ReduceOp::Prod, 0)?;
    ///     x.download()
    /// })?;
    /// assert_eq!(results, [[9, 16], [3, 4]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type or a rank outside of the group;
    /// [`GpuError::Group`] if another rank fails or makes a different call; as all collectives.
    #[doc(alias("ncclReduce", "MPI_Reduce"))]
    pub fn reduce<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
        op: ReduceOp,
        root: usize,
    ) -> Result<()> {
        const NAME: &str = "DeviceGroup::reduce";
        self.check_rank(NAME, "`root`", root)?;
        self.exchange(NAME, Operation::Reduce { op, root }, source, destination)
    }

    /// Concatenates the sources of all ranks, in order of rank.
    ///
    /// With N ranks the destination is N times as long as the source, which may be the part of the
    /// destination that it is copied to.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let rank = group.rank() as u32;
    ///     let x = group.device().upload(&[rank, 10 + rank])?;
    ///     let all = group.device().alloc::<u32>(4)?;
    ///     group.all_gather(&x, &all)?;
    ///     all.download()
    /// })?;
    /// assert_eq!(results, [[0, 10, 1, 11], [0, 10, 1, 11]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type; [`GpuError::Group`] if another rank
    /// fails or makes a different call; as all collectives.
    #[doc(alias("ncclAllGather", "MPI_Allgather"))]
    pub fn all_gather<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
    ) -> Result<()> {
        self.exchange("DeviceGroup::all_gather", Operation::AllGather, source, destination)
    }

    /// Reduces the source buffers of all ranks element by element with `op`, and stores one part of
    /// the result on each rank, in order of rank.
    ///
    /// With N ranks the source is N times as long as the destination, which may be the part of the
    /// source that belongs to the rank.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup, ReduceOp};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let x = group.device().upload(&[1u32, 2, 3, 4])?;
    ///     let part = group.device().alloc::<u32>(2)?;
    ///     group.reduce_scatter(&x, &part, ReduceOp::Sum)?;
    ///     part.download()
    /// })?;
    /// assert_eq!(results, [[2, 4], [6, 8]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type; [`GpuError::Group`] if another rank
    /// fails or makes a different call; as all collectives.
    #[doc(alias("ncclReduceScatter", "MPI_Reduce_scatter"))]
    pub fn reduce_scatter<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
        op: ReduceOp,
    ) -> Result<()> {
        let operation = Operation::ReduceScatter(op);
        self.exchange("DeviceGroup::reduce_scatter", operation, source, destination)
    }

    /// Splits the source into one part for each rank, sends part `r` to rank `r`, and stores the
    /// parts received, in order of rank.
    ///
    /// The buffers have the same length, a multiple of the number of ranks, and must not overlap.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let rank = group.rank() as u32;
    ///     let x = group.device().upload(&[10 * rank, 10 * rank + 1])?;
    ///     let y = group.device().alloc::<u32>(2)?;
    ///     group.all_to_all(&x, &y)?;
    ///     y.download()
    /// })?;
    /// assert_eq!(results, [[0, 10], [1, 11]]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::BufferAccess`] for lengths that do not match, or buffers that overlap;
    /// [`GpuError::Argument`] for an unsupported element type; [`GpuError::Group`] if another rank
    /// fails or makes a different call; as all collectives.
    #[doc(alias("ncclAlltoAll", "MPI_Alltoall"))]
    pub fn all_to_all<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        source: S,
        destination: D,
    ) -> Result<()> {
        self.exchange("DeviceGroup::all_to_all", Operation::AllToAll, source, destination)
    }

    /// Sends the elements to rank `to`, which calls [`DeviceGroup::recv`] for the same number of
    /// them. Other ranks make no call. Through host memory it returns when they are received. Two
    /// ranks that both send first get an error; through NCCL it may come as late as the time limit.
    /// NCCL buffers a few megabytes: a send of less may succeed although rank `to` leaves the group
    /// without receiving it.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let x = group.device().upload(&[group.rank() as f64])?;
    ///     match group.rank() {
    ///         0 => group.send(&x, 1)?,
    ///         _ => group.recv(&x, 0)?,
    ///     }
    ///     x.get(0)
    /// })?;
    /// assert_eq!(results, [0.0, 0.0]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] for an unsupported element type or rank; [`GpuError::Group`] if
    /// another rank fails or makes a different call; as all collectives.
    #[doc(alias("ncclSend", "MPI_Send"))]
    pub fn send<S: Elements>(&self, source: S, to: usize) -> Result<()> {
        const NAME: &str = "DeviceGroup::send";
        self.check_peer(NAME, "`to`", to)?;
        let source = Side::new("source", &source);
        self.run(NAME, Operation::Send { to }, Some(source), None)
    }

    /// Receives the elements that rank `from` sends with [`DeviceGroup::send`].
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// // Each rank passes a token on to the next.
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?, Device::open("cpu")?];
    /// let results = DeviceGroup::on_each(&devices, |group| {
    ///     let x = group.device().upload(&[7u8])?;
    ///     if group.rank() > 0 {
    ///         group.recv(&x, group.rank() - 1)?;
    ///     }
    ///     x.write(&[x.get(0)? + 1])?;
    ///     if group.rank() + 1 < group.world_size() {
    ///         group.send(&x, group.rank() + 1)?;
    ///     }
    ///     x.get(0)
    /// })?;
    /// assert_eq!(results, [8, 9, 10]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] for an unsupported element type or rank; [`GpuError::Group`] if
    /// another rank fails or makes a different call; as all collectives.
    #[doc(alias("ncclRecv", "MPI_Recv"))]
    pub fn recv<D: Elements>(&self, destination: D, from: usize) -> Result<()> {
        const NAME: &str = "DeviceGroup::recv";
        self.check_peer(NAME, "`from`", from)?;
        let destination = Side::new("destination", &destination);
        self.run(NAME, Operation::Recv { from }, None, Some(destination))
    }

    /// Waits until all ranks have called it. Does not wait for work of their devices.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// DeviceGroup::on_each(&devices, |group| group.barrier())?;
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Group`] as all collectives.
    pub fn barrier(&self) -> Result<()> {
        self.run("DeviceGroup::barrier", Operation::Barrier, None, None)
    }

    fn exchange<S: Elements, D: Elements<Kind = S::Kind>>(
        &self,
        function: &'static str,
        operation: Operation,
        source: S,
        destination: D,
    ) -> Result<()> {
        let source = Side::new("source", &source);
        let destination = Side::new("destination", &destination);
        self.run(function, operation, Some(source), Some(destination))
    }

    /// Checks a call and executes it.
    fn run(
        &self,
        function: &'static str,
        operation: Operation,
        source: Option<Side<'_>>,
        destination: Option<Side<'_>>,
    ) -> Result<()> {
        let (call, views) = self.checked(function, operation, source, destination)?;
        let result = match &self.nccl {
            Some(nccl) if Nccl::executes(&call) => nccl.run(function, &call, views),
            _ => self.host.run(function, &call, self.device(), views, self.time_limit()),
        };
        if let (Err(error), Some(nccl)) = (&result, &self.nccl)
            && let Some(fault) = Fault::of_error(error)
        {
            nccl.end(&fault);
        }
        result.in_function(function)
    }

    /// Checks a call, and returns it with the bytes of its buffers.
    pub(super) fn checked<'a>(
        &self,
        function: &'static str,
        operation: Operation,
        source: Option<Side<'a>>,
        destination: Option<Side<'a>>,
    ) -> Result<(Call, Views<'a>)> {
        self.device().context.check_alive().in_function(function)?;
        let mut dtype = DType::U8;
        for side in [&source, &destination].into_iter().flatten() {
            let owner = (side.view.context, side.view.label);
            let role = || format!("the {}", side.name);
            same_device(&self.device().context, owner, function, role)?;
            dtype = side.dtype(function)?;
        }
        if let (Some(source), Some(destination)) = (&source, &destination) {
            let (from, to) = (&source.view, &destination.view);
            check_same_elements(function, (from.label, &from.element), (to.label, &to.element))?;
        }
        let sides = (source.as_ref(), destination.as_ref());
        let count = count(function, operation, sides, self.world_size())?;
        let call = Call { operation, dtype, count, on_devices: false };
        self.check_overlap(function, &call, sides)?;
        Ok((call, (source.map(|side| side.view), destination.map(|side| side.view))))
    }

    /// Checks that buffers overlap only if one is the part of the other that it is copied to or
    /// from.
    fn check_overlap(
        &self,
        function: &'static str,
        call: &Call,
        (source, destination): (Option<&Side<'_>>, Option<&Side<'_>>),
    ) -> Result<()> {
        let ranges = source.zip(destination).and_then(|(source, destination)| {
            Some((source.view.bytes()?.1, destination.view.bytes()?.1))
        });
        let Some((from, to)) = ranges else { return Ok(()) };
        let overlap = from.memory == to.memory
            && from.offset < to.offset + to.size
            && to.offset < from.offset + from.size;
        let own_part = (self.rank() * call.part()) as u64;
        let in_place = match call.operation {
            Operation::AllGather => from.offset == to.offset + own_part,
            Operation::ReduceScatter(_) => to.offset == from.offset + own_part,
            Operation::AllToAll => false,
            _ => from.offset == to.offset,
        };
        if !overlap || in_place {
            return Ok(());
        }
        let help = match call.operation {
            Operation::AllToAll => "use another buffer for one of them",
            Operation::AllGather => "pass as source this rank's part of the destination",
            Operation::ReduceScatter(_) => "pass as destination this rank's part of the source",
            _ => "pass the same elements twice, or buffers that do not overlap",
        };
        Err(GpuError::BufferAccess(BufferAccessError {
            operation: function,
            problem: "source and destination overlap".to_owned(),
            help: help.to_owned(),
        }))
    }

    /// Checks that a rank is in the group.
    pub(super) fn check_rank(&self, function: &str, argument: &str, rank: usize) -> Result<()> {
        let world = self.world_size();
        if rank < world {
            return Ok(());
        }
        Err(GpuError::Argument(ArgumentError::new(
            function,
            argument,
            format!("is {rank}, but the group has {world} ranks"),
            format!("pass a rank from 0 to {}", world - 1),
        )))
    }

    /// Checks that a rank is another one of the group.
    pub(super) fn check_peer(&self, function: &str, argument: &str, rank: usize) -> Result<()> {
        self.check_rank(function, argument, rank)?;
        if rank != self.seat().rank {
            return Ok(());
        }
        let problem = format!("is {rank}, the rank of the caller");
        let help = "pass another rank, or copy the elements with Buffer::copy_to";
        Err(GpuError::Argument(ArgumentError::new(function, argument, problem, help)))
    }
}

/// A buffer of a call.
pub(super) struct Side<'a> {
    name: &'static str,
    view: View<'a>,
}

impl<'a> Side<'a> {
    pub(super) fn new<E: Elements>(name: &'static str, elements: &'a E) -> Self {
        Self { name, view: elements.bytes() }
    }

    fn len(&self) -> usize {
        (self.view.size / self.view.element.size) as usize
    }

    /// Returns the element type; an error unless collectives support it.
    fn dtype(&self, function: &str) -> Result<DType> {
        let element = &self.view.element;
        if let Some(dtype) = DType::of_layout(&element.layout)
            && is_supported(dtype)
        {
            return Ok(dtype);
        }
        Err(GpuError::Argument(ArgumentError::new(
            function,
            format!("the {}", self.name),
            format!("has elements of type {}", element.rust_name()),
            "view them (Buffer::view_as) as f32, f64, f16, bf16, i32, u32, i64, u64 or u8",
        )))
    }
}

/// Returns the number of elements of a call; an error if the lengths of its buffers do not fit.
fn count(
    function: &'static str,
    operation: Operation,
    (source, destination): (Option<&Side<'_>>, Option<&Side<'_>>),
    world: usize,
) -> Result<usize> {
    let reject = |problem: String, help: String| {
        Err(GpuError::BufferAccess(BufferAccessError { operation: function, problem, help }))
    };
    let (source, destination) = match (source, destination) {
        (Some(source), Some(destination)) => (source.len(), destination.len()),
        (Some(side), None) | (None, Some(side)) => return Ok(side.len()),
        (None, None) => return Ok(0),
    };
    let (sent, received) = operation.lengths(world);
    if sent == received {
        if source != destination {
            return reject(
                format!("the source has {source} elements, and the destination {destination}"),
                "pass buffers or slices of the same length".to_owned(),
            );
        }
        if source % sent != 0 {
            return reject(
                format!("{source} elements are not a multiple of the {sent} ranks"),
                format!("pass {} elements, the same number for each rank", source - source % sent),
            );
        }
        return Ok(source / sent);
    }
    let (long, short, part, all) = match sent {
        1 => ("destination", "source", source, destination),
        _ => ("source", "destination", destination, source),
    };
    if part.checked_mul(world) == Some(all) {
        return Ok(part);
    }
    reject(
        format!(
            "the {long} has {all} elements, but {world} ranks with the {part} of the {short} need \
             {}",
            part as u128 * world as u128
        ),
        format!("pass a {long} that is {world} times as long as the {short}"),
    )
}
