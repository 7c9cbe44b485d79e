//! [`DeviceGroup`]: forming a group, and its properties.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::channel::Channel;
use super::client;
use super::coordinator::Coordinator;
use super::duplicates::{self, Gpu};
use super::fault::Fault;
use super::handshake::Introduction;
use super::host_memory::HostMemory;
use super::membership::Membership;
use super::nccl::Nccl;
use super::negotiation::{Outcome, Setting, negotiate};
use super::rendezvous::{Rendezvous, TIME_LIMIT};
use super::server;
use super::wait::Wait;
use crate::api::device::Device;
use crate::api::error::{ArgumentError, GpuError, Result};
use crate::api::info::DeviceKind;
use crate::core::collective::Seat;

/// The largest number of ranks.
const MAX_WORLD: usize = 1 << 16;

/// One rank of a group of devices that communicate by collectives (`ProcessGroup` in PyTorch, a
/// communicator in NCCL and MPI).
///
/// Ranks are numbered from 0. Every rank must call the same collectives, such as
/// [`DeviceGroup::all_reduce`], in the same order, with the same lengths and element types. A value
/// of this type is one rank, for use by one thread; [`DeviceGroup::local`] forms a group of devices
/// in this process, and [`DeviceGroup::join`] a group of several processes, on one or several
/// hosts.
///
/// A call reads its source after all work submitted before that writes it, and later work sees its
/// results: no barriers are needed. Through host memory it returns when all ranks have made it, and
/// its operation, element type and length are compared over the group first: an error names the
/// rank that differs. Through NCCL, the first call of each operation, element type and size class
/// (powers of two) does that too; later ones are only submitted, like launches, and faults are
/// errors of whatever waits for their results. With the environment variable `SCRY_GROUP_CHECK=1`
/// all calls are compared first.
///
/// If a rank leaves the group, fails, makes a different call or does not call within [the time
/// limit](DeviceGroup::set_time_limit), every other rank gets [`GpuError::Group`], which names it.
/// The group has then ended, and all later calls return the same error; the devices remain usable,
/// and may form a new group.
///
/// NVIDIA's library NCCL executes the collectives of CUDA devices if all ranks have the same
/// version of it; otherwise they pass through host memory, which is slow:
/// [`DeviceGroup::transport`]. The environment variable `SCRY_GROUP` overrides this: with `host`
/// NCCL is not used, and with `nccl` a group that cannot use it is an error.
///
/// ```
/// use scry_gpu::{Device, DeviceGroup, ReduceOp};
///
/// let devices = [Device::open("cpu")?, Device::open("cpu")?, Device::open("cpu")?];
/// let sums = DeviceGroup::on_each(&devices, |group| {
///     let x = group.device().upload(&[group.rank() as f32, 1.0])?;
///     group.all_reduce(&x, &x, ReduceOp::Sum)?;
///     x.download()
/// })?;
/// assert_eq!(sums, [[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]);
/// # Ok::<(), scry_gpu::GpuError>(())
/// ```
#[doc(alias("ProcessGroup", "communicator", "ncclComm", "MPI_Comm"))]
#[must_use = "the group ends when a rank drops it"]
pub struct DeviceGroup {
    device: Device,
    seat: Seat,
    /// Dropped before the way to the other ranks, which learn that this one leaves.
    pub(super) nccl: Option<Nccl>,
    pub(super) host: Arc<HostMemory>,
    /// Why the collectives move data as they do.
    reason: String,
    limit: Arc<Mutex<Duration>>,
}

/// How the collectives of a group move data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupTransport {
    /// Through host memory and, between processes, TCP connections to rank 0. It works with all
    /// devices and is slow: each collective is a download, a computation of one thread of rank 0,
    /// and an upload, and the caller waits for it.
    HostMemory,
    /// By NVIDIA's library NCCL, between GPUs, over NVLink, PCIe or a network. Collectives are
    /// commands of the device like launches, and the caller does not wait for them. Barriers, and
    /// means of integers, use host memory.
    Nccl,
}

impl fmt::Display for GroupTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostMemory => f.write_str("host memory, which is slow"),
            Self::Nccl => f.write_str("NCCL"),
        }
    }
}

impl DeviceGroup {
    /// Forms a group of devices of this process, and returns its ranks in the order of the devices.
    /// Use each from a thread of its own, as [`DeviceGroup::on_each`] does.
    ///
    /// The devices may be of different backends, and several may be the CPU device, opened several
    /// times.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let mut group = DeviceGroup::local(&devices)?.into_iter();
    /// let (first, second) = (group.next().expect("two"), group.next().expect("two"));
    /// let other = std::thread::spawn(move || {
    ///     let x = second.device().alloc::<u32>(3)?;
    ///     second.recv(&x, 0)?;
    ///     x.download()
    /// });
    /// first.send(&first.device().upload(&[1u32, 2, 3])?, 1)?;
    /// assert_eq!(other.join().expect("it does not panic")?, [1, 2, 3]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] without devices; [`GpuError::Group`] if two ranks have the same
    /// [`Device`], or the same GPU.
    pub fn local(devices: &[Device]) -> Result<Vec<Self>> {
        const NAME: &str = "DeviceGroup::local";
        let world = devices.len();
        check_seat(NAME, "`devices`", Seat { rank: 0, world })?;
        check_devices(devices).map_err(|fault| fault.error(Seat { rank: 0, world }, NAME))?;
        let setting = Setting::from_env(NAME)?;
        let coordinator = Arc::new(Coordinator::new(world));
        let member = |(rank, device): (usize, &Device)| {
            let channel = Channel::Process { coordinator: coordinator.clone(), rank };
            let seat = Seat { rank, world };
            Self::new(NAME, device, seat, channel, (setting, TIME_LIMIT))
        };
        // All ranks take part in the choice of the transport at the same time.
        thread::scope(|scope| {
            let start = |it| scope.spawn(move || member(it));
            let threads: Vec<_> = devices.iter().enumerate().map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<Self>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }

    /// Forms a group of devices of this process, runs `program` for each rank on a thread, and
    /// returns the results in order of rank.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let devices = [Device::open("cpu")?, Device::open("cpu")?];
    /// let ranks = DeviceGroup::on_each(&devices, |group| Ok(group.rank()))?;
    /// assert_eq!(ranks, [0, 1]);
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As [`DeviceGroup::local`]; the error of a rank, if any returned one: rather the one that
    /// ended the group than what the other ranks returned because of it.
    ///
    /// # Panics
    /// If `program` panics on a rank.
    pub fn on_each<T: Send>(
        devices: &[Device],
        program: impl Fn(&Self) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let members = Self::local(devices)?;
        let results: Vec<Result<T>> = thread::scope(|scope| {
            let program = &program;
            let start = |member: Self| scope.spawn(move || program(&member));
            let threads: Vec<_> = members.into_iter().map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Result<T>>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        let is_cause = |error: &GpuError| !matches!(error, GpuError::Group(_));
        match results.iter().filter_map(|result| result.as_ref().err()).find(|it| is_cause(it)) {
            Some(cause) => Err(cause.clone()),
            None => results.into_iter().collect(),
        }
    }

    /// Joins a group of several processes: `world_size` ranks, of which this one is `rank`. Returns
    /// when all ranks have joined.
    ///
    /// Rank 0 listens at the rendezvous until then. It coordinates the group afterwards: calls of
    /// other ranks fail once it has left. When it is dropped, it waits at most 2 s for the others
    /// to leave.
    ///
    /// ```no_run
    /// use scry_gpu::{Device, DeviceGroup, Rendezvous};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// # let rank = 0;
    /// let gpu = Device::open("cpu")?;
    /// let group = DeviceGroup::join(&gpu, Rendezvous::tcp("10.0.0.1:29400"), rank, 4)?;
    /// group.barrier()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GpuError::Argument`] if `rank` is not less than `world_size`, or without a token;
    /// [`GpuError::Group`] if a rank does not join within [`Rendezvous::time_limit`], states a
    /// different number of ranks, or has the rank or the GPU of another one, or if the rendezvous
    /// cannot be opened or reached, or has another token.
    #[doc(alias("init_process_group", "ncclCommInitRank"))]
    pub fn join(
        device: &Device,
        rendezvous: Rendezvous,
        rank: usize,
        world_size: usize,
    ) -> Result<Self> {
        const NAME: &str = "DeviceGroup::join";
        let seat = Seat { rank, world: world_size };
        check_seat(NAME, "`world_size`", seat)?;
        let rendezvous = rendezvous.default_token(std::env::var("SCRY_TOKEN").ok());
        let token = rendezvous.required_token(NAME)?;
        let setting = Setting::from_env(NAME)?;
        let start = device.context.start_wait();
        let interrupted = || start.check_interrupts(&device.context).is_err();
        let limit = rendezvous.limit;
        let wait = Wait { limit, interrupted: &interrupted };
        let gpu = Gpu::of(device.info(), duplicates::host());
        let channel = match rank {
            0 => server::open(&rendezvous, &token, (world_size, gpu), &wait).map(Channel::Server),
            _ => client::join(&rendezvous, &token, &Introduction { seat, gpu }, &wait)
                .map(Channel::Client),
        };
        let channel = channel.map_err(|fault| fault.error(seat, NAME))?;
        Self::new(NAME, device, seat, channel, (setting, limit))
    }

    /// Joins the group that the environment describes: the same as [`Membership::from_env`] and
    /// [`Membership::join`]. On GPUs each rank needs its own: use [`Membership::local_rank`], as in
    /// the example of [`Membership`].
    ///
    /// ```no_run
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// # fn main() -> scry_gpu::Result<()> {
    /// // scry launch --ranks 4 -- target/release/program
    /// let group = DeviceGroup::from_env(&Device::open("cpu")?)?;
    /// println!("rank {} of {}", group.rank(), group.world_size());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Membership::from_env`] and [`DeviceGroup::join`].
    pub fn from_env(device: &Device) -> Result<Self> {
        Membership::from_env()?.join(device)
    }

    /// Agrees with the other ranks on a transport, which they do at the same time.
    fn new(
        function: &'static str,
        device: &Device,
        seat: Seat,
        channel: Channel,
        (setting, limit): (Setting, Duration),
    ) -> Result<Self> {
        let host = Arc::new(HostMemory::new(channel, seat));
        let limit = Arc::new(Mutex::new(limit));
        let outcome = negotiate(function, (&host, device, seat), setting, &limit)?;
        let Outcome { mut nccl, reason } = outcome;
        if let Some(nccl) = &mut nccl {
            nccl.watch().map_err(|fault| fault.error(seat, function))?;
        }
        let group = Self { device: device.clone(), seat, nccl, host, reason, limit };
        if seat.rank == 0 {
            group.log_transport();
        }
        Ok(group)
    }

    fn log_transport(&self) {
        let level = match (&self.nccl, self.device.info().kind) {
            (Some(_), _) | (_, DeviceKind::Software) => log::Level::Debug,
            _ => log::Level::Warn,
        };
        let (world, transport, reason) = (self.world_size(), self.transport(), &self.reason);
        log::log!(
            target: "scry::group",
            level,
            "collectives of this group of {world} pass through {transport}: {reason}"
        );
    }

    /// Returns the rank, from 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.seat.rank
    }

    /// Returns the number of ranks.
    #[must_use]
    pub fn world_size(&self) -> usize {
        self.seat.world
    }

    /// Returns the device of this rank, which its buffers must be of.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns how the collectives move data.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup, GroupTransport};
    ///
    /// let group = &DeviceGroup::local(&[Device::open("cpu")?])?[0];
    /// assert_eq!(group.transport(), GroupTransport::HostMemory);
    /// assert_eq!(group.transport().to_string(), "host memory, which is slow");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn transport(&self) -> GroupTransport {
        match self.nccl {
            Some(_) => GroupTransport::Nccl,
            None => GroupTransport::HostMemory,
        }
    }

    /// Returns why the collectives move data as [`DeviceGroup::transport`] states.
    ///
    /// ```
    /// use scry_gpu::{Device, DeviceGroup};
    ///
    /// let group = &DeviceGroup::local(&[Device::open("cpu")?])?[0];
    /// assert_eq!(group.transport_reason(), "rank 0 has no CUDA device");
    /// # Ok::<(), scry_gpu::GpuError>(())
    /// ```
    #[must_use]
    pub fn transport_reason(&self) -> &str {
        &self.reason
    }

    /// Returns the maximum time that a call of this rank waits for the other ranks.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the maximum time that a call of this rank waits for the other ranks: initially 60 s, or
    /// [`Rendezvous::time_limit`]. When it has passed, every rank gets an error that names those
    /// that did not call; if rank 0 of several processes does not answer, 5 s later. Through NCCL
    /// it limits the time in which the device finishes no call, although one is submitted.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use scry_gpu::{Device, DeviceGroup, GpuError, GroupFault};
    ///
    /// let group = DeviceGroup::local(&[Device::open("cpu")?, Device::open("cpu")?])?;
    /// group[0].set_time_limit(Duration::from_millis(20));
    /// let Err(GpuError::Group(error)) = group[0].barrier() else { panic!("rank 1 is silent") };
    /// assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &[1][..]));
    /// # Ok::<(), GpuError>(())
    /// ```
    pub fn set_time_limit(&self, limit: Duration) {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner) = limit;
    }

    pub(super) fn seat(&self) -> Seat {
        self.seat
    }
}

/// Checks rank and number of ranks; errors name `argument`, from which the number comes.
fn check_seat(function: &str, argument: &str, Seat { rank, world }: Seat) -> Result<()> {
    let error = |argument: &str, problem: String, help: &str| {
        Err(GpuError::Argument(ArgumentError::new(function, argument, problem, help)))
    };
    match world {
        0 if argument == "`devices`" => {
            error(argument, "is empty".to_owned(), "pass at least one device")
        }
        0 => error(argument, "is 0".to_owned(), "pass the number of ranks, at least 1"),
        world if world > MAX_WORLD => error(
            argument,
            format!("has {world} ranks, but a group has at most {MAX_WORLD}"),
            "form several groups",
        ),
        world if rank >= world => error(
            "`rank`",
            format!("is {rank}, but the group has {world} ranks"),
            "number the ranks from 0",
        ),
        _ => Ok(()),
    }
}

/// Checks that no two ranks have the same device.
fn check_devices(devices: &[Device]) -> Result<(), Fault> {
    for (rank, device) in devices.iter().enumerate() {
        if let Some(first) = devices[..rank].iter().position(|other| other == device) {
            return Err(duplicates::fault(first, rank, "are the same Device"));
        }
    }
    let gpu = |device: &Device| Gpu::of(device.info(), Some(duplicates::THIS_HOST));
    duplicates::check(&devices.iter().map(gpu).collect::<Vec<_>>())
}

impl fmt::Debug for DeviceGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceGroup")
            .field("rank", &self.seat.rank)
            .field("world_size", &self.seat.world)
            .field("device", &self.device.info().name)
            .field("transport", &self.transport())
            .finish()
    }
}
