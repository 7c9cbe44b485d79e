//! The side of the ranks other than 0 of a group in several processes.

use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::handshake::{self, Introduction, MESSAGE_LIMIT, NotJoined};
use super::message::{Request, encode_request, read_reply};
use super::progress::{Messages, Progress};
use super::rendezvous::Rendezvous;
use super::token::Token;
use super::wait::{Ended, Wait};
use super::wire::{Broken, Wire};
use crate::api::error::GroupFault;
use crate::core::collective::Call;
use crate::core::collective::Seat;
use crate::lifecycle::fork_guard::Process;

/// How much longer than its time limit a rank waits for rank 0, which finds out at that limit which
/// rank is at fault.
const GRACE: Duration = Duration::from_secs(5);

/// The longest time for the last messages of a connection.
const FAREWELL: Duration = Duration::from_millis(500);

/// Pause between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);

/// The connection of a rank to rank 0.
#[derive(Debug)]
pub(super) struct Client {
    wire: Wire,
    seat: Seat,
    /// The fault that has ended the group.
    fault: Option<Fault>,
    process: Process,
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
    rendezvous.check_form()?;
    loop {
        let remaining = wait.limit.saturating_sub(start.elapsed());
        let attempt = Wait { limit: remaining.min(MESSAGE_LIMIT), ..*wait };
        // A name that cannot be resolved yet is tried again too.
        let failure = match connect(rendezvous, attempt.limit) {
            Err(failure) => failure,
            Ok(mut wire) => match handshake::introduce(&mut wire, token, introduction, &attempt) {
                Ok(()) => {
                    let process = Process::current();
                    let mut client = Client { wire, seat, fault: None, process };
                    // Rank 0 may have started later than this rank.
                    let wait = Wait { limit: wait.limit.saturating_add(GRACE), ..*wait };
                    return client.receive(0, &wait).map(|_| client);
                }
                Err(NotJoined::Fault(fault)) => return Err(fault),
                Err(NotJoined::Retry(broken)) => format!("its connection {}", broken.text()),
            },
        };
        match wait.ended(start) {
            None => thread::sleep(RETRY),
            Some(Ended::Interrupt) => return Err(Fault::interrupted(seat.rank)),
            Some(Ended::Limit) => return Err(no_rendezvous(rendezvous, wait.limit, &failure)),
        }
    }
}

/// Returns a connection to the first address that accepts one, or the last failure.
fn connect(rendezvous: &Rendezvous, limit: Duration) -> Result<Wire, String> {
    let limit = limit.max(Duration::from_millis(1));
    let mut failure = String::new();
    for address in rendezvous.resolve().map_err(|fault| fault.problem)? {
        match TcpStream::connect_timeout(&address, limit).and_then(not_itself).and_then(Wire::new) {
            Ok(wire) => return Ok(wire),
            Err(error) => failure = error.to_string(),
        }
    }
    Err(failure)
}

/// Rejects a connection to itself: TCP makes one if the system chooses for the client the port to
/// which it connects. It would then keep rank 0 from opening it.
fn not_itself(stream: TcpStream) -> io::Result<TcpStream> {
    match stream.local_addr()? == stream.peer_addr()? {
        true => Err(io::ErrorKind::ConnectionRefused.into()),
        false => Ok(stream),
    }
}

fn no_rendezvous(rendezvous: &Rendezvous, limit: Duration, failure: &str) -> Fault {
    let address = rendezvous.address();
    Fault::new(
        GroupFault::Absent,
        [0],
        format!("rank 0 did not open the rendezvous {address} within {limit:?}: {failure}"),
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
        if self.process.has_forked() {
            return Err(Fault::forked(self.seat.rank));
        }
        match self.wire.write(&request, wait).and_then(|()| self.wire.write(data, wait)) {
            Ok(()) => {
                self.receive(expected, &Wait { limit: wait.limit.saturating_add(GRACE), ..*wait })
            }
            Err(broken) => Err(self.stop(&broken, wait)),
        }
    }

    /// Reports how far the device of this rank is. Returns the fault of the group.
    pub(super) fn report(
        &mut self,
        progress: &Progress,
        messages: &[Messages],
    ) -> Result<(), Fault> {
        self.fault.clone().map_or(Ok(()), Err)?;
        if self.process.has_forked() {
            return Err(Fault::forked(self.seat.rank));
        }
        let wait = Wait { limit: GRACE, interrupted: &|| false };
        let messages = messages.iter().map(|messages| Request::Messages(*messages));
        let mut requests = messages.chain([Request::Progress(*progress)]);
        match requests.try_for_each(|it| self.wire.write(&encode_request(&it), &wait)) {
            Ok(()) => self.receive(0, &wait).map(|_| ()),
            Err(broken) => Err(self.stop(&broken, &wait)),
        }
    }

    /// Ends the group in the middle of a request that could not be written.
    fn stop(&mut self, broken: &Broken, wait: &Wait<'_>) -> Fault {
        // If rank 0 has ended the group, it has sent the reason.
        let short = Wait { limit: FAREWELL, interrupted: &|| false };
        let sent = match read_reply(&mut self.wire, usize::MAX, &short) {
            Ok(Some(Err(fault))) => Some(fault),
            _ => None,
        };
        let fault = sent.unwrap_or_else(|| match broken {
            Broken::Late => Fault::coordinator_is_silent(wait.limit),
            Broken::Interrupted => Fault::interrupted(self.seat.rank),
            other => Fault::connection(0, &other.text()),
        });
        // The other ranks learn from the end of the connection that this rank is gone.
        self.wire.close();
        self.fault.insert(fault).clone()
    }

    /// Receives a reply. A fault ends the group.
    fn receive(&mut self, expected: usize, wait: &Wait<'_>) -> Result<Vec<u8>, Fault> {
        let result = match read_reply(&mut self.wire, expected, wait) {
            Ok(Some(result)) => result,
            Ok(None) => Err(Fault::protocol(0, "a reply that does not fit the call")),
            Err(Broken::Late) => Err(Fault::coordinator_is_silent(wait.limit)),
            Err(Broken::Interrupted) => {
                self.tell(&Request::Interrupted);
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
        self.tell(&Request::DeviceFailed);
    }

    /// Sends a request without an answer.
    fn tell(&mut self, request: &Request) {
        // The connection of a forked process is that of its parent.
        if !self.process.has_forked() {
            let wait = Wait { limit: FAREWELL, interrupted: &|| false };
            // If rank 0 is gone, the group has ended already.
            let _ = self.wire.write(&encode_request(request), &wait);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tell(&Request::Leave);
    }
}
