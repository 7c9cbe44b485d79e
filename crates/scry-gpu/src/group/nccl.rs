//! Collectives that the devices of a group execute, by NCCL: commands of a device like launches.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::mem::discriminant;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::host_memory::{HostMemory, Views};
use super::wait::SLICE;
use super::watchdog::Watchdog;
use crate::api::device::Device;
use crate::api::dtype::DType;
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, Result};
use crate::api::reduce_op::ReduceOp;
use crate::core::collective::Seat;
use crate::core::collective::{Call, Operation};
use crate::core::command::{BoundBuffer, Command, Dispatch, Groups, Role};
use crate::core::command_list::{CommandList, Observer};
use crate::core::compiled_kernel::KernelVariant;
use crate::core::driver::{Communicator, CommunicatorJob};
use crate::core::failures::FailedSubmission;
use crate::core::handles::{MemoryId, SubmissionIndex};

/// Bytes of the id of a communicator.
pub(super) const ID_SIZE: usize = 128;

/// The part of a rank that makes collectives by NCCL.
pub(super) struct Nccl {
    kernel: Arc<KernelVariant>,
    pub(super) state: Arc<State>,
    /// Whether all calls are compared before they are made.
    checks: bool,
    /// The kinds of calls that were compared: NCCL connects the ranks at the first of a kind.
    compared: Mutex<HashSet<Kind>>,
    /// Started by [`Nccl::watch`].
    watchdog: Option<Watchdog>,
}

/// What distinguishes calls that NCCL makes in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    operation: std::mem::Discriminant<Operation>,
    peer: Option<usize>,
    /// The number of binary digits of the size in bytes.
    magnitude: u32,
}

/// What a rank shares with its watchdog and its submissions.
pub(super) struct State {
    pub device: Device,
    pub seat: Seat,
    pub communicator: Arc<dyn Communicator>,
    progress: Mutex<InProgress>,
    fault: Mutex<Option<Fault>>,
}

/// The calls that the device executes.
#[derive(Default)]
struct InProgress {
    /// The number of collectives submitted, those between two ranks not counted.
    submitted: u64,
    unfinished: VecDeque<Unfinished>,
}

/// A call that the device may not have finished.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    pub call: Call,
    /// The number of collectives submitted with this one.
    pub number: u64,
    pub since: Instant,
    pub failed: FailedSubmission,
}

impl Nccl {
    /// Joins the communicator of a group; returns when all ranks have.
    pub(super) fn join(
        device: &Device,
        seat: Seat,
        job: &CommunicatorJob<'_>,
        checks: bool,
        limit: Duration,
    ) -> Result<Self> {
        let (kernel, communicator) = join_within(device, job, limit)?;
        let kernel = KernelVariant::new(&device.context.driver, kernel);
        let state = Arc::new(State {
            device: device.clone(),
            seat,
            communicator,
            progress: Mutex::default(),
            fault: Mutex::default(),
        });
        Ok(Self { kernel, state, checks, compared: Mutex::default(), watchdog: None })
    }

    /// Starts the thread that watches the calls of the device.
    pub(super) fn watch(&mut self, host: &Arc<HostMemory>, limit: &Arc<Mutex<Duration>>) {
        self.watchdog = Some(Watchdog::start(&self.state, host, limit));
    }

    /// Returns whether the devices can execute a call. NCCL computes the mean of integers from a
    /// sum that may wrap around.
    pub(super) fn executes(call: &Call) -> bool {
        let is_mean = match call.operation {
            Operation::AllReduce(op) | Operation::ReduceScatter(op) => op == ReduceOp::Mean,
            Operation::Reduce { op, .. } => op == ReduceOp::Mean,
            Operation::Barrier => return false,
            _ => false,
        };
        let is_float = matches!(call.dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        is_float || !is_mean
    }

    /// Submits a call; `source` and `destination` have its lengths.
    pub(super) fn run(
        &self,
        function: &'static str,
        call: &Call,
        host: &HostMemory,
        views: Views<'_>,
        limit: Duration,
    ) -> Result<()> {
        let mut list = CommandList::default();
        self.append(function, call, host, views, limit, &mut list)?;
        let submitted = self.state.device.context.submit_unless_empty(list);
        submitted.inspect_err(|error| {
            // Interrupted, the call has had no effect yet and may be repeated.
            if !matches!(error, GpuError::Interrupted(_)) {
                self.end(&host.abort());
            }
        })?;
        // Its submission may have come too late to be among those that the end of the group failed.
        match self.state.fault() {
            Some(fault) => Err(fault.error(self.state.seat, function)),
            None => Ok(()),
        }
    }

    /// Adds a call to a list of commands.
    pub(super) fn append(
        &self,
        function: &'static str,
        call: &Call,
        host: &HostMemory,
        (source, destination): Views<'_>,
        limit: Duration,
        list: &mut CommandList,
    ) -> Result<()> {
        if let Some(fault) = host.fault() {
            self.end(&fault);
        }
        if let Some(fault) = self.state.fault() {
            return Err(fault.error(self.state.seat, function));
        }
        if call.count == 0 {
            return Ok(());
        }
        self.compare(function, call, host, limit)?;
        let (sends, receives) = call.operation.takes_part(self.state.seat.rank);
        let source = source.filter(|_| sends).and_then(|view| view.bytes());
        let destination = destination.filter(|_| receives).and_then(|view| view.bytes());
        let bound =
            |side: &Option<(_, _)>, writes| side.map(|(_, range)| BoundBuffer { range, writes });
        let bindings = bound(&source, false).into_iter().chain(bound(&destination, true)).collect();
        let dispatch = Dispatch {
            kernel: self.kernel.id(),
            bindings,
            groups: Groups::Direct([1; 3]),
            immediates: call.encode().to_vec(),
            role: Role::Collective,
        };
        let memories = [&source, &destination].into_iter().flatten().map(|(memory, _)| *memory);
        list.push(Command::Dispatch(dispatch), memories);
        list.retain(&self.kernel);
        let written = destination.map(|(_, range)| range.memory);
        let state = self.state.clone();
        list.observers.push(Arc::new(Submitted { state, call: *call, written }));
        Ok(())
    }

    /// Compares the call with those of the other ranks if it is the first of its kind, or if all
    /// are to be compared.
    fn compare(
        &self,
        function: &'static str,
        call: &Call,
        host: &HostMemory,
        limit: Duration,
    ) -> Result<()> {
        let kind = Kind::of(call);
        if !self.checks && lock(&self.compared).contains(&kind) {
            return Ok(());
        }
        let announced = Call { on_devices: true, ..*call };
        let compared = host.exchange(function, &announced, &self.state.device, Vec::new(), limit);
        match compared {
            Ok(_) => {
                lock(&self.compared).insert(kind);
                Ok(())
            }
            Err(error) => {
                if let Some(fault) = Fault::of_error(&error) {
                    self.end(&fault);
                }
                Err(error)
            }
        }
    }

    /// Ends the calls of the device, because the group has ended.
    pub(super) fn end(&self, fault: &Fault) {
        self.state.end(fault);
    }
}

impl Kind {
    fn of(call: &Call) -> Self {
        Self {
            operation: discriminant(&call.operation),
            peer: call.operation.peer(),
            magnitude: usize::BITS - call.part().leading_zeros(),
        }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nccl").field("seat", &self.state.seat).finish_non_exhaustive()
    }
}

/// Joins a communicator on a thread, which is left behind at the time limit.
fn join_within(
    device: &Device,
    job: &CommunicatorJob<'_>,
    limit: Duration,
) -> Result<(crate::core::handles::KernelId, Arc<dyn Communicator>)> {
    let failed = |why: String| {
        GpuError::Driver(DriverError::new(&device.info().name, "NCCL", why, DRIVER_FAILED))
    };
    let (sender, receiver) = channel();
    let driver = device.context.driver.clone();
    let (id, rank, world, disable_multicast) =
        (*job.id, job.rank, job.world, job.disable_multicast);
    let join = move || {
        let job = CommunicatorJob { id: &id, rank, world, disable_multicast };
        // The receiver is gone after the time limit.
        let _ = sender.send(driver.join_communicator(&job));
    };
    let spawned = thread::Builder::new().name("scry-nccl-join".to_owned()).spawn(join);
    spawned.map_err(|error| failed(format!("no thread could be started: {error}")))?;
    let wait = device.context.start_wait();
    let start = Instant::now();
    loop {
        match receiver.recv_timeout(SLICE) {
            Ok(joined) => return joined,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed("the thread that joins ended".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) if start.elapsed() >= limit => {
                return Err(failed(format!("not all ranks have joined within {limit:?}")));
            }
            Err(RecvTimeoutError::Timeout) => wait.check_interrupts(&device.context)?,
        }
    }
}

/// Notes the submissions of a call.
struct Submitted {
    state: Arc<State>,
    call: Call,
    written: Option<MemoryId>,
}

impl Observer for Submitted {
    fn submitted(&self, submission: SubmissionIndex) {
        let written = self.written.into_iter().collect();
        let failed = FailedSubmission { submission, thread: thread::current().id(), written };
        let mut progress = lock(&self.state.progress);
        progress.submitted += u64::from(self.call.operation.is_collective());
        let number = progress.submitted;
        let since = Instant::now();
        progress.unfinished.push_back(Unfinished { call: self.call, number, since, failed });
    }
}

impl State {
    /// Returns the fault that has ended the group.
    pub(super) fn fault(&self) -> Option<Fault> {
        lock(&self.fault).clone()
    }

    /// Forgets the calls that the device has finished. Returns the number of collectives submitted,
    /// and the oldest call that is not finished.
    pub(super) fn poll(&self) -> Result<(u64, Option<Unfinished>)> {
        let mut progress = lock(&self.progress);
        while let Some(oldest) = progress.unfinished.front() {
            if !self.device.context.driver.poll(oldest.failed.submission)? {
                break;
            }
            progress.unfinished.pop_front();
        }
        Ok((progress.submitted, progress.unfinished.front().cloned()))
    }

    /// Ends all unfinished calls: waits for their results fail.
    pub(super) fn end(&self, fault: &Fault) {
        let mut known = lock(&self.fault);
        if known.is_some() {
            return;
        }
        *known = Some(fault.clone());
        drop(known);
        let _ = self.poll();
        let unfinished = std::mem::take(&mut lock(&self.progress).unfinished);
        let calls = unfinished.iter().map(|it| it.call.to_string());
        let Seat { rank, world } = self.seat;
        log::error!(
            target: "scry::group",
            "rank {rank} of {world}: {}; unfinished: [{}]",
            fault.problem,
            calls.collect::<Vec<_>>().join(", ")
        );
        let failed = unfinished.into_iter().map(|it| it.failed).collect();
        let error = fault.clone().error(self.seat, "DeviceGroup");
        self.device.context.fail(failed, &error);
        // It may wait for other ranks after it has ended the work of the device.
        let communicator = self.communicator.clone();
        let abort = move || communicator.abort();
        let name = "scry-nccl-abort".to_owned();
        if let Err(error) = thread::Builder::new().name(name).spawn(abort) {
            log::error!(target: "scry::group", "no thread could be started: {error}");
        }
    }
}

// Poison is ignored: nothing panics while the locks are held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
