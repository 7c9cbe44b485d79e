//! The membership of a device in a communicator of NCCL, which makes collectives.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::capture::{CapturedGraph, capture};
use super::params::Range;
use crate::api::dtype::DType;
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, Result};
use crate::api::reduce_op::ReduceOp;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::nccl::{Comm, CommState, Nccl, Transfer, UniqueId};
use crate::backend::cuda::ffi::types::{DevicePtr, Stream};
use crate::backend::cuda::lock;
use crate::core::collective::{Call, Operation, Seat};
use crate::core::driver::{Communicator, CommunicatorJob};
use crate::lifecycle::exit_guard;

/// How long a call of a communicator that is not blocking is polled without pauses.
const SPIN_TIME: Duration = Duration::from_millis(1);

/// How long an abort waits for a call in progress before it ends that call.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// How long process exit waits for NCCL's threads after a communicator that is not blocking was
/// aborted or destroyed: nothing reports when they are done, and they would run into the exit
/// handlers of the libraries.
const RECLAIM_TIME: Duration = Duration::from_secs(1);

/// A rank of a communicator.
pub(crate) struct Membership {
    comm: Comm,
    seat: Seat,
    /// Locked during a call of NCCL that uses the communicator.
    calls: Mutex<()>,
    /// Whether the communicator is being aborted or destroyed.
    ended: AtomicBool,
    gpu: Arc<Gpu>,
}

/// A collective, encoded for NCCL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collective {
    transfer: Transfer,
    count: usize,
    dtype: c_int,
    source: DevicePtr,
    destination: DevicePtr,
}

impl Membership {
    /// Joins a communicator. Returns when all ranks have. The context must be current.
    pub(crate) fn join(gpu: &Arc<Gpu>, job: &CommunicatorJob<'_>) -> Result<Arc<Self>> {
        let nccl = Nccl::shared()?;
        let seat = Seat { rank: job.rank, world: job.world };
        let id = UniqueId(*job.id);
        let place = (to_int(seat.rank), to_int(seat.world));
        let comm = nccl
            .join(&id, place, job.disable_multicast, job.deadline)
            .map_err(|problem| failed(gpu, problem))?;
        let (calls, ended) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { comm, seat, calls, ended, gpu: Arc::clone(gpu) }))
    }

    /// Returns the collective of a launch; `None` unless the call fits the bindings.
    pub(crate) fn collective(&self, bindings: &[Range], immediates: &[u8]) -> Option<Collective> {
        let call = Call::decode(immediates.try_into().ok()?, self.seat.world)?;
        encode(&call, self.seat, bindings)
    }

    /// Issues a collective to a stream, which may be under capture. The context must be current.
    /// After a failure the communicator is aborted: the other ranks wait for the call.
    pub(crate) fn issue(self: &Arc<Self>, stream: Stream, collective: &Collective) -> Result<()> {
        let issued = self.try_issue(stream, collective);
        issued.map_err(|problem| {
            Arc::clone(self).abort();
            failed(&self.gpu, problem)
        })
    }

    fn try_issue(&self, stream: Stream, collective: &Collective) -> Result<(), String> {
        let Collective { transfer, count, dtype, source, destination } = *collective;
        let call = self.enter()?;
        // SAFETY: a call that has entered keeps the communicator from being destroyed, and from
        // being aborted unless this call hangs. The context is current, and `encode` checked that
        // source and destination fit the bindings, which stay alive until the work is done.
        let is_issued =
            unsafe { self.comm.issue(transfer, (count, dtype), (source, destination), stream) }?;
        drop(call);
        if is_issued { Ok(()) } else { self.wait_until_issued() }
    }

    /// Begins a call, which ends when the guard is dropped; an error if the communicator is being
    /// aborted or destroyed.
    fn enter(&self) -> Result<MutexGuard<'_, ()>, String> {
        // Without the lock, which a call that hangs may hold.
        self.check()?;
        let call = lock(&self.calls);
        self.check().map(|()| call)
    }

    fn check(&self) -> Result<(), String> {
        match self.ended.load(Ordering::Acquire) {
            true => Err("the communicator was aborted".to_owned()),
            false => Ok(()),
        }
    }

    /// Waits until a thread of NCCL has issued a call of a communicator that is not blocking.
    fn wait_until_issued(&self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            let call = self.enter()?;
            // SAFETY: as for calls, between two of which this thread leaves the communicator.
            match unsafe { self.comm.state() } {
                CommState::Ready => return Ok(()),
                CommState::Failed(problem) => return Err(problem),
                CommState::Busy => drop(call),
            }
            match start.elapsed() < SPIN_TIME {
                true => thread::yield_now(),
                false => thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    /// Captures a collective for a recording. The context must be current.
    pub(crate) fn capture(self: &Arc<Self>, collective: &Collective) -> Result<CapturedGraph<'_>> {
        capture(&self.gpu, |stream| self.issue(stream, collective))
    }

    /// Marks the communicator as ended, so that no call begins; returns whether the caller has to
    /// end it.
    fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel) && !self.gpu.is_abandoned()
    }

    /// Marks the communicator as ended, and starts a thread that does the rest: it may wait for
    /// other ranks. Process exit waits for the thread, and prevents it once exit has begun.
    fn end_on_thread(&self, rest: impl FnOnce() + Send + 'static) {
        let (true, Some(call)) = (self.end(), exit_guard::begin_call()) else { return };
        let is_blocking = self.comm.is_blocking();
        start_thread(move || {
            rest();
            if !is_blocking {
                thread::sleep(RECLAIM_TIME);
            }
            drop(call);
        });
    }

    /// Waits until no call is in progress, for at most [`CALL_TIMEOUT`]; returns whether none is.
    fn wait_for_call(&self) -> bool {
        let start = Instant::now();
        while matches!(self.calls.try_lock(), Err(TryLockError::WouldBlock)) {
            if start.elapsed() >= CALL_TIMEOUT {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Aborts the communicator, which this thread has ended. The lock is not held: NCCL waits until
    /// recordings of its work are dropped, and their owner may be about to make a call.
    fn abort_ended(&self) {
        // SAFETY: `end` returned true, which it does once, so that the communicator exists.
        if !self.wait_for_call() && unsafe { self.comm.revoke() } {
            self.wait_for_call();
        }
        // SAFETY: as above, and no call begins any more. None is in progress either, except one
        // that has waited for another rank for longer than the timeouts, in a blocking communicator
        // of NCCL 2.19 to 2.28, which cannot be revoked. NCCL does not document that such a call
        // may be aborted by another thread: its maintainers say that it works from 2.19.1 on, and
        // PyTorch's watchdog relies on it. Without it the call would hang for good, with the
        // device's locks. ARCHITECTURE.md states this exception, and how to avoid it.
        unsafe { self.comm.abort() };
    }
}

impl Communicator for Membership {
    fn failure(&self) -> Option<String> {
        if let Err(problem) = self.check() {
            return Some(problem);
        }
        // A process that is exiting has no use for the answer.
        let _exit = exit_guard::begin_call()?;
        // While a call is in progress there is nothing to ask: the call reports a failure.
        let _call = self.calls.try_lock().ok()?;
        self.check().ok()?;
        // SAFETY: under the lock the communicator is neither destroyed nor aborted.
        match unsafe { self.comm.state() } {
            CommState::Failed(problem) => Some(problem),
            CommState::Ready | CommState::Busy => None,
        }
    }

    fn abort(self: Arc<Self>) {
        let this = Arc::clone(&self);
        self.end_on_thread(move || this.abort_ended());
    }

    fn destroy(&self) {
        let (true, Some(call)) = (self.end(), exit_guard::begin_call()) else { return };
        if self.wait_for_call() {
            // SAFETY: as in `abort_ended`; no call is in progress.
            unsafe { self.comm.destroy() };
            if !self.comm.is_blocking() {
                start_thread(move || {
                    thread::sleep(RECLAIM_TIME);
                    drop(call);
                });
            }
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let comm = self.comm;
        // SAFETY: it is called if `end` has returned true, which it does once, and nothing uses the
        // communicator any more.
        self.end_on_thread(move || unsafe { comm.abort() });
    }
}

/// Starts a thread that ends a communicator.
fn start_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name("scry-nccl-end".to_owned()).spawn(work) {
        log::error!("cuda: a communicator is not ended: no thread could start: {error}");
    }
}

/// Returns the error of a call that failed.
fn failed(gpu: &Gpu, problem: String) -> GpuError {
    GpuError::Driver(DriverError::new(&gpu.info.name, "NCCL", problem, DRIVER_FAILED))
}

fn to_int(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

/// Encodes a call of the rank at `seat`; `None` unless it fits the bindings.
fn encode(call: &Call, seat: Seat, bindings: &[Range]) -> Option<Collective> {
    let sizes = [call.contributed(seat)?, call.received(seat)?];
    let mut bindings = bindings.iter();
    let mut addresses = [0; 2];
    for (size, address) in sizes.into_iter().zip(&mut addresses) {
        if size > 0 {
            let binding = bindings.next().filter(|it| it.size == size as u64)?;
            *address = binding.address;
        }
    }
    if bindings.next().is_some() {
        return None;
    }
    // NCCL checks the address that the other ranks of a broadcast send from, and does not use it.
    let [source, destination] = match addresses {
        [0, destination] => [destination; 2],
        used => used,
    };
    let transfer = transfer(call, seat.world)?;
    let dtype = nccl_dtype(call.dtype)?;
    Some(Collective { transfer, count: call.count, dtype, source, destination })
}

/// Returns the transfer of a call; `None` if NCCL has none.
fn transfer(call: &Call, world: usize) -> Option<Transfer> {
    Some(match call.operation {
        Operation::AllReduce(op) => Transfer::AllReduce { op: nccl_op(op) },
        Operation::ReduceScatter(op) => Transfer::ReduceScatter { op: nccl_op(op) },
        Operation::Reduce { op, root } => Transfer::Reduce { op: nccl_op(op), root: to_int(root) },
        Operation::Broadcast { root } => Transfer::Broadcast { root: to_int(root) },
        Operation::AllGather => Transfer::AllGather,
        Operation::AllToAll => {
            Transfer::AllToAll { world: to_int(world), part: call.part() as u64 }
        }
        Operation::Send { to } => Transfer::Send { to: to_int(to) },
        Operation::Recv { from } => Transfer::Recv { from: to_int(from) },
        Operation::Barrier => return None,
    })
}

/// Returns the `ncclRedOp_t` of a reduction.
fn nccl_op(op: ReduceOp) -> c_int {
    match op {
        ReduceOp::Sum => 0,
        ReduceOp::Prod => 1,
        ReduceOp::Max => 2,
        ReduceOp::Min => 3,
        ReduceOp::Mean => 4,
    }
}

/// Returns the `ncclDataType_t` of an element type; `None` if NCCL has none.
fn nccl_dtype(dtype: DType) -> Option<c_int> {
    Some(match dtype {
        DType::I8 => 0,
        DType::U8 => 1,
        DType::I32 => 2,
        DType::U32 => 3,
        DType::I64 => 4,
        DType::U64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::BF16 => 9,
        DType::I16 | DType::U16 => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(operation: Operation) -> Call {
        Call { operation, dtype: DType::F32, count: 5, on_devices: false }
    }

    fn range(address: u64, size: u64) -> Range {
        Range { address, size }
    }

    fn encoded(operation: Operation, rank: usize, bindings: &[Range]) -> Option<Collective> {
        encode(&call(operation), Seat { rank, world: 3 }, bindings)
    }

    #[test]
    fn calls_are_encoded_with_their_addresses() {
        let found = encoded(Operation::AllGather, 1, &[range(16, 20), range(64, 60)]);
        let expected = Collective {
            transfer: Transfer::AllGather,
            count: 5,
            dtype: 7,
            source: 16,
            destination: 64,
        };
        assert_eq!(found, Some(expected));
        let found = encoded(Operation::AllToAll, 1, &[range(16, 60), range(128, 60)]);
        assert_eq!(found.map(|it| it.transfer), Some(Transfer::AllToAll { world: 3, part: 20 }));
    }

    /// What a rank does not read or write is not bound.
    #[test]
    fn unused_buffers_are_not_written() {
        let addresses = |operation, rank| {
            let found =
                encoded(operation, rank, &[range(16, 20)]).map(|it| (it.source, it.destination));
            found.expect("one binding fits")
        };
        assert_eq!(addresses(Operation::Broadcast { root: 1 }, 0), (16, 16));
        assert_eq!(addresses(Operation::Reduce { op: ReduceOp::Sum, root: 1 }, 0), (16, 0));
        assert_eq!(addresses(Operation::Send { to: 1 }, 0), (16, 0));
        assert_eq!(addresses(Operation::Recv { from: 1 }, 0), (16, 16));
    }

    #[test]
    fn calls_must_fit_their_bindings() {
        let both = Operation::AllReduce(ReduceOp::Mean);
        assert!(encoded(both, 0, &[range(16, 20), range(16, 20)]).is_some());
        assert_eq!(encoded(both, 0, &[range(16, 20)]), None);
        assert_eq!(encoded(both, 0, &[range(16, 20), range(16, 24)]), None);
        assert_eq!(encoded(both, 0, &[range(16, 20); 3]), None);
        assert_eq!(encoded(Operation::Barrier, 0, &[]), None);
        let long = Call { count: usize::MAX / 4, ..call(both) };
        assert_eq!(encode(&long, Seat { rank: 0, world: 3 }, &[range(16, 20); 2]), None);
    }

    /// The numbers of NCCL's header.
    #[test]
    fn types_and_reductions_have_their_numbers() {
        let types = DType::ALL.into_iter().filter_map(nccl_dtype).collect::<Vec<_>>();
        let mut sorted = types.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>(), "{types:?}");
        assert_eq!((nccl_dtype(DType::F16), nccl_dtype(DType::BF16)), (Some(6), Some(9)));
        assert_eq!(ReduceOp::ALL.map(nccl_op), [0, 1, 3, 2, 4]);
    }
}
