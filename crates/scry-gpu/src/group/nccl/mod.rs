//! Collectives that the devices of a group execute, by NCCL: commands of a device like launches.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::host_memory::{HostMemory, Views};
use super::progress::Messages;
use super::wait::SLICE;
use super::watchdog::Watchdog;
use crate::api::device::Device;
use crate::api::dtype::DType;
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, InFunction, Result};
use crate::api::reduce_op::ReduceOp;
use crate::core::collective::Seat;
use crate::core::collective::{Call, Operation};
use crate::core::command::{BoundBuffer, Command, Dispatch, Groups, Role};
use crate::core::command_list::CommandList;
use crate::core::compiled_kernel::KernelVariant;
use crate::core::driver::{Communicator, CommunicatorJob};
use crate::core::failures::FailedSubmission;
use crate::core::handles::{KernelId, MemoryId, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::observer::Observer;

/// Bytes of the id of a communicator.
pub(super) const ID_SIZE: usize = 128;

/// The part of a rank that executes collectives by NCCL.
pub(super) struct Nccl {
    kernel: Arc<KernelVariant>,
    pub(super) state: Arc<State>,
    /// Started by [`Nccl::watch`].
    watchdog: Option<Watchdog>,
}

/// What distinguishes calls that NCCL executes in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    operation: Discriminant<Operation>,
    op: Option<ReduceOp>,
    dtype: DType,
    peer: Option<usize>,
    /// The number of binary digits of the size in bytes.
    magnitude: u32,
}

/// What a rank shares with its watchdog and its commands.
pub(super) struct State {
    pub device: Device,
    pub seat: Seat,
    pub communicator: Arc<dyn Communicator>,
    /// Dropped with the group, also while recordings of its calls exist.
    host: Weak<HostMemory>,
    /// The time limit of calls.
    pub limit: Arc<Mutex<Duration>>,
    /// Whether all calls are compared before they are submitted.
    checks: bool,
    /// The kinds of calls that were compared: NCCL connects the ranks at the first of a kind.
    compared: Mutex<HashSet<Kind>>,
    progress: Mutex<InProgress>,
    fault: Mutex<Option<Fault>>,
}

/// The calls that the device executes.
struct InProgress {
    /// The number of collectives submitted, those between two ranks not counted.
    submitted: u64,
    /// The messages submitted, by peer, and whether they have been reported.
    messages: BTreeMap<usize, (Messages, bool)>,
    /// The call that is being submitted: NCCL may wait for other ranks, to connect them.
    submitting: Option<(Call, Instant)>,
    unfinished: VecDeque<Unfinished>,
    /// When a call was last found to be finished.
    moved: Instant,
    /// Whether the group has ended, or this rank has left it.
    has_ended: bool,
    /// Submissions after that.
    late: Vec<FailedSubmission>,
}

/// A call that the device may not have finished.
struct Unfinished {
    call: Call,
    /// The number of collectives submitted with this one.
    number: u64,
    /// Of a message, its number among those with the peer in the same direction; else 0.
    message: u64,
    since: Instant,
    failed: FailedSubmission,
    /// The buffers of the call, which other devices may access until they notice a fault.
    buffers: Arc<[Arc<Memory>]>,
}

/// The oldest call that is not finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Oldest {
    pub call: Call,
    pub number: u64,
    pub message: u64,
    /// When it was submitted, or, if that is later, when the call before it was finished.
    pub since: Instant,
}

/// How long buffers of calls that were aborted are kept: other ranks have noticed the fault then.
const NOTICE: Duration = Duration::from_secs(2);

impl Nccl {
    /// Joins the communicator of a group; returns when all ranks have.
    pub(super) fn join(
        device: &Device,
        seat: Seat,
        job: &CommunicatorJob<'_>,
        (host, limit): (&Arc<HostMemory>, &Arc<Mutex<Duration>>),
        checks: bool,
    ) -> Result<Self> {
        let (kernel, communicator) = join_within(device, job)?;
        let kernel = KernelVariant::new(&device.context.driver, kernel);
        let state = Arc::new(State {
            device: device.clone(),
            seat,
            communicator,
            host: Arc::downgrade(host),
            limit: limit.clone(),
            checks,
            compared: Mutex::default(),
            progress: Mutex::new(InProgress::new()),
            fault: Mutex::default(),
        });
        Ok(Self { kernel, state, watchdog: None })
    }

    /// Starts the thread that watches the calls of the device.
    pub(super) fn watch(&mut self) -> Result<(), Fault> {
        self.watchdog = Some(Watchdog::start(&self.state)?);
        Ok(())
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
    pub(super) fn run(&self, function: &'static str, call: &Call, views: Views<'_>) -> Result<()> {
        let mut list = CommandList::default();
        self.append(function, call, views, &mut list)?;
        let submitted = self.state.device.context.submit_unless_empty(list);
        submitted.inspect_err(|error| {
            // Interrupted, the call has had no effect yet and may be repeated.
            if !matches!(error, GpuError::Interrupted(_) | GpuError::Group(_))
                && let Some(host) = self.state.host()
            {
                self.end(&host.abort());
            }
        })
    }

    /// Adds a call to a list of commands.
    pub(super) fn append(
        &self,
        function: &'static str,
        call: &Call,
        (source, destination): Views<'_>,
        list: &mut CommandList,
    ) -> Result<()> {
        self.state.check_fault().in_function(function)?;
        if call.count == 0 {
            // Nothing to execute, so nothing to submit.
            return if self.state.checks { self.state.compare(call) } else { Ok(()) };
        }
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
        let memories = || [&source, &destination].into_iter().flatten().map(|(memory, _)| *memory);
        list.push(Command::Dispatch(dispatch), memories());
        list.retain(&self.kernel);
        let (state, buffers) = (self.state.clone(), memories().cloned().collect());
        list.observers.push(Arc::new(Watched { state, call: *call, buffers }));
        Ok(())
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
            op: call.operation.op(),
            dtype: call.dtype,
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

/// Joins a communicator on a thread, which is left behind if NCCL does not return at the deadline.
fn join_within(
    device: &Device,
    job: &CommunicatorJob<'_>,
) -> Result<(KernelId, Arc<dyn Communicator>)> {
    let failed = |why: String| {
        GpuError::Driver(DriverError::new(&device.info().name, "NCCL", why, DRIVER_FAILED))
    };
    let (sender, receiver) = channel();
    let driver = device.context.driver.clone();
    let (id, rank, world) = (*job.id, job.rank, job.world);
    let (disable_multicast, deadline) = (job.disable_multicast, job.deadline);
    let shares_process = job.shares_process;
    let join = move || {
        let job =
            CommunicatorJob { id: &id, rank, world, shares_process, disable_multicast, deadline };
        // Without a receiver the communicator is dropped, and aborted.
        let _ = sender.send(driver.join_communicator(&job));
    };
    let spawned = thread::Builder::new().name("scry-nccl-join".to_owned()).spawn(join);
    spawned.map_err(|error| failed(format!("no thread could be started: {error}")))?;
    let wait = device.context.start_wait();
    loop {
        match receiver.recv_timeout(SLICE) {
            Ok(joined) => return joined,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed("the thread that joins ended".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= deadline => {
                return Err(failed("not all ranks have joined in time".to_owned()));
            }
            Err(RecvTimeoutError::Timeout) => wait.check_interrupts(&device.context)?,
        }
    }
}

/// A call in a list of commands.
struct Watched {
    state: Arc<State>,
    call: Call,
    buffers: Arc<[Arc<Memory>]>,
}

impl Observer for Watched {
    fn prepare(&self) -> Result<()> {
        self.state.check_fault()?;
        self.state.compare(&self.call)
    }

    fn begin(&self) {
        let now = Instant::now();
        lock(&self.state.progress).submitting.get_or_insert((self.call, now));
    }

    fn end(&self, submitted: Option<(SubmissionIndex, &Arc<[MemoryId]>)>) {
        let mut progress = lock(&self.state.progress);
        progress.submitting = None;
        let Some((submission, written)) = submitted else { return };
        let (thread, written) = (thread::current().id(), written.clone());
        let failed = FailedSubmission { submission, thread, written };
        progress.submitted += u64::from(self.call.operation.is_collective());
        let message = progress.next_message(self.call.operation);
        progress.note_message(self.call.operation);
        if progress.has_ended {
            progress.late.push(failed);
            return;
        }
        let (number, since) = (progress.submitted, Instant::now());
        let buffers = self.buffers.clone();
        progress.unfinished.push_back(Unfinished {
            call: self.call,
            number,
            message,
            since,
            failed,
            buffers,
        });
    }

    fn settle(&self) -> Result<()> {
        let late = std::mem::take(&mut lock(&self.state.progress).late);
        let Some(fault) = self.state.fault() else { return Ok(()) };
        let error = fault.error(self.state.seat, FUNCTION);
        if !late.is_empty() {
            self.state.device.context.fail(late, &error);
        }
        Err(error)
    }
}

/// The function of errors until the call that returns them has set its own.
const FUNCTION: &str = "DeviceGroup";

impl InProgress {
    fn new() -> Self {
        Self {
            submitted: 0,
            messages: BTreeMap::new(),
            submitting: None,
            unfinished: VecDeque::new(),
            moved: Instant::now(),
            has_ended: false,
            late: Vec::new(),
        }
    }

    fn oldest(&self) -> Option<Oldest> {
        let (call, number, message, since) = match (self.unfinished.front(), self.submitting) {
            (Some(it), _) => (it.call, it.number, it.message, it.since),
            (None, Some((call, since))) => {
                let number = self.submitted + u64::from(call.operation.is_collective());
                (call, number, self.next_message(call.operation), since)
            }
            (None, None) => return None,
        };
        Some(Oldest { call, number, message, since: since.max(self.moved) })
    }

    /// Returns the number that a message will have, if it is submitted next; 0 for collectives.
    fn next_message(&self, operation: Operation) -> u64 {
        let with = |peer| self.messages.get(&peer).map(|it| it.0).unwrap_or_default();
        match operation {
            Operation::Send { to } => with(to).sent + 1,
            Operation::Recv { from } => with(from).received + 1,
            _ => 0,
        }
    }

    /// Counts a message that was submitted.
    fn note_message(&mut self, operation: Operation) {
        let (Operation::Send { to: peer } | Operation::Recv { from: peer }) = operation else {
            return;
        };
        let (messages, is_reported) = self.messages.entry(peer).or_default();
        messages.peer = peer;
        match operation {
            Operation::Send { .. } => messages.sent += 1,
            _ => messages.received += 1,
        }
        *is_reported = false;
    }
}

impl State {
    /// Returns the fault that has ended the group.
    pub(super) fn fault(&self) -> Option<Fault> {
        lock(&self.fault).clone()
    }

    /// Returns the way to the other ranks, unless this rank has left.
    pub(super) fn host(&self) -> Option<Arc<HostMemory>> {
        self.host.upgrade()
    }

    /// Returns the error of the group if it has ended, or if this rank has left it.
    fn check_fault(&self) -> Result<()> {
        if let Some(fault) = self.host().and_then(|host| host.fault()) {
            self.end(&fault);
        }
        self.fault().map_or(Ok(()), |fault| Err(fault.error(self.seat, FUNCTION)))
    }

    /// Compares a call with those of the other ranks if it is the first of its kind, or if all are
    /// to be compared.
    fn compare(&self, call: &Call) -> Result<()> {
        let kind = Kind::of(call);
        if !self.checks && lock(&self.compared).contains(&kind) {
            return Ok(());
        }
        let announced = Call { on_devices: true, ..*call };
        let limit = *lock(&self.limit);
        let Some(host) = self.host() else {
            return Err(Fault::left(self.seat.rank).error(self.seat, FUNCTION));
        };
        match host.exchange(FUNCTION, &announced, &self.device, Vec::new(), limit) {
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

    /// Forgets the calls that the device has finished. Returns the number of collectives submitted,
    /// and the oldest call that is not finished.
    pub(super) fn poll(&self) -> Result<(u64, Option<Oldest>)> {
        let mut progress = lock(&self.progress);
        while let Some(oldest) = progress.unfinished.front() {
            if !self.device.context.driver.poll(oldest.failed.submission)? {
                break;
            }
            progress.unfinished.pop_front();
            progress.moved = Instant::now();
        }
        Ok((progress.submitted, progress.oldest()))
    }

    /// Returns whether messages have changed since the last report.
    pub(super) fn has_messages(&self) -> bool {
        lock(&self.progress).messages.values().any(|(_, is_reported)| !is_reported)
    }

    /// Returns the messages that have changed since the last report.
    pub(super) fn take_messages(&self) -> Vec<Messages> {
        let mut progress = lock(&self.progress);
        let changed = progress.messages.values_mut().filter(|(_, is_reported)| !is_reported);
        let take = |(messages, is_reported): &mut (Messages, bool)| {
            *is_reported = true;
            *messages
        };
        changed.map(take).collect()
    }

    /// Ends the group for this rank: waits for the results of unfinished calls fail, and the
    /// communicator is aborted.
    pub(super) fn end(&self, fault: &Fault) {
        let mut known = lock(&self.fault);
        if known.is_some() {
            return;
        }
        *known = Some(fault.clone());
        drop(known);
        // A device that cannot be asked has errors of its own.
        let _ = self.poll();
        let mut progress = lock(&self.progress);
        progress.has_ended = true;
        let unfinished = std::mem::take(&mut progress.unfinished);
        drop(progress);
        let Seat { rank, world } = self.seat;
        let oldest = unfinished.front().map(|it| format!(", unfinished since {}", it.call));
        log::error!(
            target: "scry::group",
            "rank {rank} of {world}: {}{}",
            fault.problem,
            oldest.unwrap_or_default()
        );
        let mut failed: Vec<_> = unfinished.iter().map(|it| it.failed.clone()).collect();
        failed.dedup_by_key(|it| it.submission);
        self.device.context.fail(failed, &fault.clone().error(self.seat, FUNCTION));
        self.communicator.clone().abort();
        let buffers: Vec<_> = unfinished.into_iter().map(|it| it.buffers).collect();
        let keep = move || {
            thread::sleep(NOTICE);
            drop(buffers);
        };
        if let Err(error) = thread::Builder::new().name("scry-nccl-notice".to_owned()).spawn(keep) {
            log::error!(target: "scry::group", "no thread could be started: {error}");
        }
    }

    /// This rank leaves, with all calls of its device finished: later ones fail.
    pub(super) fn leave(&self) {
        lock(&self.fault).get_or_insert_with(|| Fault::left(self.seat.rank));
        lock(&self.progress).has_ended = true;
    }
}

// Poison is ignored: nothing panics while the locks are held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
