//! The side of the ranks other than 0 of a group in several processes.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::call::Call;
use super::fault::{Fault, Seat};
use super::handshake::{self, Introduction, MESSAGE_LIMIT, NotJoined};
use super::message::{Request, encode_request, read_reply};
use super::rendezvous::Rendezvous;
use super::token::Token;
use super::wait::{Ended, Wait};
use super::wire::{Broken, Wire};
use crate::api::error::GroupFault;

/// How much longer than its time limit a rank waits for rank 0, which finds out at that limit which
/// rank is at fault.
const GRACE: Duration = Duration::from_secs(5);

/// Pause between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);

/// The connection of a rank to rank 0.
#[derive(Debug)]
pub(super) struct Client {
    wire: Wire,
    seat: Seat,
    /// The fault that has ended the group.
    fault: Option<Fault>,
}

/// Joins a group. Returns when all ranks have.
pub(super) fn join(
    rendezvous: &Rendezvous,
    token: &Token,
    introduction: &Introduction,
    wait: &Wait<'_>,
) -> Result<Client, Fault> {
    let start = Instant::now();
    let seat = introduction.seat;
    loop {
        let remaining = wait.limit.saturating_sub(start.elapsed());
        let attempt = Wait { limit: remaining.min(MESSAGE_LIMIT), ..*wait };
        let connected = connect(&rendezvous.resolve()?, attempt.limit, wait.limit);
        if let Some(mut wire) = connected {
            match handshake::introduce(&mut wire, token, introduction, &attempt) {
                Ok(()) => {
                    let mut client = Client { wire, seat, fault: None };
                    // Rank 0 may have started later than this rank.
                    let wait = Wait { limit: wait.limit.saturating_add(GRACE), ..*wait };
                    return client.receive(0, &wait).map(|_| client);
                }
                Err(NotJoined::Fault(fault)) => return Err(fault),
                Err(NotJoined::Retry) => {}
            }
        }
        match wait.ended(start) {
            None => thread::sleep(RETRY),
            Some(Ended::Interrupt) => return Err(Fault::interrupted(seat.rank)),
            Some(Ended::Limit) => return Err(no_rendezvous(rendezvous, wait.limit)),
        }
    }
}

/// Returns a connection to the first address that accepts one; `stall` is the limit of its writes.
fn connect(addresses: &[SocketAddr], limit: Duration, stall: Duration) -> Option<Wire> {
    let limit = limit.max(Duration::from_millis(1));
    let connect = |address| TcpStream::connect_timeout(address, limit).ok();
    addresses.iter().find_map(connect).and_then(|stream| Wire::new(stream, stall).ok())
}

fn no_rendezvous(rendezvous: &Rendezvous, limit: Duration) -> Fault {
    let address = rendezvous.address();
    Fault::new(
        GroupFault::Absent,
        [0],
        format!("rank 0 did not open the rendezvous {address} within {limit:?}"),
        "see the output of rank 0, check that its host can be reached at this address, or raise \
         Rendezvous::time_limit",
    )
}

impl Client {
    /// Makes a call, to which this rank contributes `data`. Returns the `expected` bytes that it
    /// receives.
    pub(super) fn exchange(
        &mut self,
        call: &Call,
        data: &[u8],
        expected: usize,
        wait: &Wait<'_>,
    ) -> Result<Vec<u8>, Fault> {
        self.fault.clone().map_or(Ok(()), Err)?;
        let request = encode_request(&Request::Call { call: *call, limit: wait.limit });
        // If rank 0 has ended the group, it has sent the reason.
        let _ = self.wire.write(&request).and_then(|()| self.wire.write(data));
        self.receive(expected, &Wait { limit: wait.limit.saturating_add(GRACE), ..*wait })
    }

    /// Receives a reply. A fault ends the group.
    fn receive(&mut self, expected: usize, wait: &Wait<'_>) -> Result<Vec<u8>, Fault> {
        let result = match read_reply(&mut self.wire, expected, wait) {
            Ok(Some(result)) => result,
            Ok(None) => Err(Fault::protocol(0, "a reply that does not fit the call")),
            Err(Broken::Late) => Err(Fault::coordinator_is_silent(wait.limit)),
            Err(Broken::Interrupted) => {
                // If rank 0 is gone, the group has ended already.
                let _ = self.wire.write(&encode_request(&Request::Interrupted));
                Err(Fault::interrupted(self.seat.rank))
            }
            Err(broken) => Err(Fault::connection(0, &broken.text())),
        };
        self.fault = result.as_ref().err().cloned();
        result
    }

    /// Ends the group, because the device of this rank failed.
    pub(super) fn abort(&mut self) {
        self.fault.get_or_insert(Fault::device_failed(self.seat.rank));
        // If rank 0 is gone, the group has ended already.
        let _ = self.wire.write(&encode_request(&Request::DeviceFailed));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.wire.write(&encode_request(&Request::Leave));
    }
}
