//! Executes calls through the memory of the host: the reference for faster ways.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::call::Call;
use super::channel::Channel;
use super::fault::{Fault, Seat};
use super::wait::Wait;
use crate::api::binding::View;
use crate::api::device::Device;
use crate::api::element::zeroed;
use crate::api::error::{GpuError, Result};
use crate::core::device_bytes;
use crate::core::transfer::Pages;

/// The part of a rank in a group that exchanges bytes through host memory.
#[derive(Debug)]
pub(super) struct HostMemory {
    /// Locked for the duration of a call, so that calls of several threads do not mix.
    channel: Mutex<Channel>,
    seat: Seat,
}

impl HostMemory {
    pub(super) fn new(channel: Channel, seat: Seat) -> Self {
        Self { channel: Mutex::new(channel), seat }
    }

    /// Executes a call; `source` and `destination` have the lengths of the call. Reads the source
    /// after all earlier work of the device that writes it. Returns when the write of the
    /// destination is submitted, before all later work.
    pub(super) fn run(
        &self,
        function: &'static str,
        call: &Call,
        device: &Device,
        (source, destination): (Option<View<'_>>, Option<View<'_>>),
        limit: Duration,
    ) -> Result<()> {
        // Poison is ignored: a panic leaves the channel between two calls, or its group ended.
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
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
        let start = device.context.start_wait();
        let interrupted = || start.check_interrupts(&device.context).is_err();
        let wait = Wait { limit, interrupted: &interrupted };
        let received = channel.exchange(self.seat, call, data, &wait);
        let received = received.map_err(|fault: Fault| fault.error(self.seat, function))?;
        match destination.filter(|_| receives) {
            Some(destination) => {
                device_bytes::write(destination, &received).inspect_err(|_| channel.abort())
            }
            None => Ok(()),
        }
    }
}

fn read(source: View<'_>) -> Result<Vec<u8>> {
    let mut data = zeroed(source.size as usize);
    device_bytes::read(source, &mut data, Pages::Fresh).map(|()| data)
}
