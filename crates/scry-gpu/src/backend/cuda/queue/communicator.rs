//! The membership of a device in a communicator of NCCL, which makes collectives.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::capture::{CapturedGraph, capture};
use super::params::Range;
use crate::api::dtype::DType;
use crate::api::error::{DRIVER_FAILED, DriverError, GpuError, Result};
use crate::api::reduce_op::ReduceOp;
use crate::backend::cuda::device::Gpu;
use crate::backend::cuda::ffi::nccl::{Comm, Nccl, Transfer, UniqueId};
use crate::backend::cuda::ffi::types::{DevicePtr, Stream};
use crate::backend::cuda::lock;
use crate::core::collective::{Call, Operation, Seat};
use crate::core::driver::{Communicator, CommunicatorJob};

/// How long an abort waits for a call in progress before it ends that call.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

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
        let (rank, world) = (to_int(seat.rank), to_int(seat.world));
        let comm = nccl
            .join(&id, rank, world, job.disable_multicast)
            .map_err(|problem| failed(gpu, problem))?;
        let (calls, ended) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { comm, seat, calls, ended, gpu: Arc::clone(gpu) }))
    }

    /// Returns the collective of a launch; `None` unless the call fits the bindings.
    pub(crate) fn collective(&self, bindings: &[Range], immediates: &[u8]) -> Option<Collective> {
        let call = Call::decode(immediates.try_into().ok()?, self.seat.world)?;
        encode(&call, self.seat, bindings)
    }

    /// Issues a collective to the main stream, or to a stream under capture. The context must be
    /// current.
    pub(crate) fn issue(&self, stream: Stream, collective: &Collective) -> Result<()> {
        let _call = lock(&self.calls);
        if self.ended.load(Ordering::Acquire) {
            return Err(failed(&self.gpu, "the communicator was aborted".to_owned()));
        }
        let Collective { transfer, count, dtype, source, destination } = *collective;
        // SAFETY: under the lock the communicator is not destroyed, nor aborted unless this call
        // hangs. The context is current, and `encode` checked that source and destination fit the
        // bindings, which stay alive until the work is done.
        let issued =
            unsafe { self.comm.issue(transfer, (count, dtype), (source, destination), stream) };
        issued.map_err(|problem| failed(&self.gpu, problem))
    }

    /// Captures a collective for a recording. The context must be current.
    pub(crate) fn capture(&self, collective: &Collective) -> Result<CapturedGraph<'_>> {
        capture(&self.gpu, |stream| self.issue(stream, collective))
    }

    /// Marks the communicator as ended; returns whether the caller has to end it.
    fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel) && !self.gpu.is_abandoned()
    }
}

impl Communicator for Membership {
    fn failure(&self) -> Option<String> {
        // While a call is in progress there is nothing to ask: the call reports a failure.
        let _call = self.calls.try_lock().ok()?;
        if self.ended.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: under the lock the communicator is neither destroyed nor aborted.
        unsafe { self.comm.failure() }
    }

    fn abort(&self) {
        if !self.end() {
            return;
        }
        let start = Instant::now();
        let call = loop {
            match self.calls.try_lock() {
                Ok(call) => break Some(call),
                Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if start.elapsed() < CALL_TIMEOUT => {
                    thread::sleep(Duration::from_millis(1));
                }
                // The call waits for another rank, and this ends it.
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        // SAFETY: `end` returns true once, so that the communicator exists. No call uses it
        // afterwards, and NCCL lets a thread abort a communicator to end a call of another thread.
        unsafe { self.comm.abort() };
        drop(call);
    }

    fn destroy(&self) {
        if self.end() {
            let _call = lock(&self.calls);
            // SAFETY: as in `abort`; no call is in progress.
            unsafe { self.comm.destroy() };
        }
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
    // NCCL may check an address that it does not use.
    let [source, destination] = match addresses {
        [0, destination] => [destination; 2],
        [source, 0] => [source; 2],
        both => both,
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
    fn unused_addresses_are_those_of_the_other_side() {
        let addresses = |operation, rank| {
            let found =
                encoded(operation, rank, &[range(16, 20)]).map(|it| (it.source, it.destination));
            found.expect("one binding fits")
        };
        assert_eq!(addresses(Operation::Broadcast { root: 1 }, 0), (16, 16));
        assert_eq!(addresses(Operation::Reduce { op: ReduceOp::Sum, root: 1 }, 0), (16, 16));
        assert_eq!(addresses(Operation::Send { to: 1 }, 0), (16, 16));
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
