//! How a rank reaches the other ranks.

use std::sync::Arc;

use super::client::Client;
use super::coordinator::Coordinator;
use super::fault::Fault;
use super::progress::{Messages, Progress};
use super::results::Received;
use super::server::Server;
use super::wait::Wait;
use crate::core::collective::Call;
use crate::core::collective::Seat;

/// The way of a rank to the coordinator.
#[derive(Debug)]
pub(super) enum Channel {
    /// All ranks are in this process.
    Process { coordinator: Arc<Coordinator>, rank: usize },
    /// This is rank 0 of several processes.
    Server(Server),
    /// This is another rank of several processes.
    Client(Client),
}

impl Channel {
    /// Makes the call of the rank at `seat`, which contributes `data`. Returns what it receives.
    pub(super) fn exchange(
        &mut self,
        seat: Seat,
        call: &Call,
        data: Vec<u8>,
        wait: &Wait<'_>,
    ) -> Result<Received, Fault> {
        match self {
            Self::Process { coordinator, rank } => coordinator.exchange(*rank, call, data, wait),
            Self::Server(server) => server.exchange(call, data, wait),
            Self::Client(client) => {
                let expected = call.received(seat).unwrap_or(usize::MAX);
                client.exchange(call, &data, expected, wait).map(Received::all)
            }
        }
    }

    /// Returns the coordinator, if it is in this process.
    pub(super) fn coordinator(&self) -> Option<&Arc<Coordinator>> {
        match self {
            Self::Process { coordinator, .. } => Some(coordinator),
            Self::Server(server) => Some(&server.coordinator),
            Self::Client(_) => None,
        }
    }

    /// Reports how far the device of this rank is in the calls that it executes, and the messages
    /// that have changed. Returns the fault of the group, if it has ended.
    pub(super) fn report(
        &mut self,
        progress: &Progress,
        messages: &[Messages],
    ) -> Result<(), Fault> {
        let (coordinator, rank) = match self {
            Self::Process { coordinator, rank } => (&*coordinator, *rank),
            Self::Server(server) => (&server.coordinator, 0),
            Self::Client(client) => return client.report(progress, messages),
        };
        messages.iter().for_each(|messages| coordinator.note_messages(rank, *messages));
        coordinator.report(rank, progress)
    }

    /// Ends the group, because the device of this rank failed.
    pub(super) fn abort(&mut self) {
        match self {
            Self::Process { coordinator, rank } => coordinator.abort(Fault::device_failed(*rank)),
            Self::Server(server) => server.coordinator.abort(Fault::device_failed(0)),
            Self::Client(client) => client.abort(),
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // The others leave when they are dropped.
        if let Self::Process { coordinator, rank } = self {
            coordinator.leave(*rank);
        }
    }
}
