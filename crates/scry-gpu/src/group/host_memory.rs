//! Executes calls through the memory of the host: the reference for faster ways.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use super::channel::Channel;
use super::coordinator::Coordinator;
use super::fault::Fault;
use super::progress::{Messages, Progress};
use super::results::Received;
use super::wait::Wait;
use crate::api::binding::View;
use crate::api::device::Device;
use crate::api::element::zeroed;
use crate::api::error::{GpuError, Result};
use crate::core::collective::Call;
use crate::core::collective::Seat;
use crate::core::device_bytes;
use crate::core::transfer::Pages;

/// The buffers of a call: source and destination, as far as it has them.
pub(super) type Views<'a> = (Option<View<'a>>, Option<View<'a>>);

/// The part of a rank in a group that exchanges bytes through host memory.
#[derive(Debug)]
pub(super) struct HostMemory {
    /// Locked for the duration of a call, so that calls of several threads do not mix.
    channel: Mutex<Channel>,
    /// That of the channel, if it is in this process.
    coordinator: Option<Arc<Coordinator>>,
    seat: Seat,
}

impl HostMemory {
    pub(super) fn new(channel: Channel, seat: Seat) -> Self {
        let coordinator = channel.coordinator().cloned();
        Self { channel: Mutex::new(channel), coordinator, seat }
    }

    /// Executes a call; `source` and `destination` have the lengths of the call. Reads the source
    /// after all earlier work of the device that writes it. Returns when the write of the
    /// destination is submitted, before all later work.
    pub(super) fn run(
        &self,
        function: &'static str,
        call: &Call,
        device: &Device,
        (source, destination): Views<'_>,
        limit: Duration,
    ) -> Result<()> {
        let mut channel = self.lock();
        let (sends, receives) = call.operation.takes_part(self.seat.rank);
        let data = match source.filter(|_| sends).map(read) {
            None => Vec::new(),
            Some(Ok(data)) => data,
            Some(Err(error)) => {
                // Interrupted, the call has had no effect yet and may be repeated.
                if !matches!(error, GpuError::Interrupted(_)) {
                    channel.abort();
                }
                return Err(error);
            }
        };
        let received = self.exchange_locked(&mut channel, function, call, device, data, limit)?;
        match destination.filter(|_| receives) {
            Some(destination) => {
                device_bytes::write(destination, &received).inspect_err(|_| channel.abort())
            }
            None => Ok(()),
        }
    }

    /// Makes a call with bytes of the host. Returns the bytes that the rank receives.
    pub(super) fn exchange(
        &self,
        function: &'static str,
        call: &Call,
        device: &Device,
        data: Vec<u8>,
        limit: Duration,
    ) -> Result<Received> {
        self.exchange_locked(&mut self.lock(), function, call, device, data, limit)
    }

    fn exchange_locked(
        &self,
        channel: &mut Channel,
        function: &'static str,
        call: &Call,
        device: &Device,
        data: Vec<u8>,
        limit: Duration,
    ) -> Result<Received> {
        let start = device.context.start_wait();
        let interrupted = || start.check_interrupts(&device.context).is_err();
        let wait = Wait { limit, interrupted: &interrupted };
        let received = channel.exchange(self.seat, call, data, &wait);
        received.map_err(|fault: Fault| fault.error(self.seat, function))
    }

    /// Returns the fault that has ended the group, as far as it is known in this process.
    pub(super) fn fault(&self) -> Option<Fault> {
        self.coordinator.as_ref()?.fault()
    }

    /// Reports how far the device of this rank is, and what `messages` returns. Returns the fault
    /// of the group, if it has ended; `None` without a report if a call is in progress.
    pub(super) fn report(
        &self,
        progress: &Progress,
        messages: impl FnOnce() -> Vec<Messages>,
    ) -> Option<Option<Fault>> {
        let mut channel = match self.channel.try_lock() {
            Ok(channel) => channel,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(channel.report(progress, &messages()).err())
    }

    /// Ends the group, because the device of this rank failed. Returns the fault.
    pub(super) fn abort(&self) -> Fault {
        let fault = Fault::device_failed(self.seat.rank);
        match &self.coordinator {
            // Without the channel, which a call of this rank may hold for a long time.
            Some(coordinator) => coordinator.abort(fault.clone()),
            None => self.lock().abort(),
        }
        fault
    }

    // Poison is ignored: a panic leaves the channel between two calls, or its group ended.
    fn lock(&self) -> MutexGuard<'_, Channel> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(source: View<'_>) -> Result<Vec<u8>> {
    let mut data = zeroed(source.size as usize);
    device_bytes::read(source, &mut data, Pages::Fresh).map(|()| data)
}
