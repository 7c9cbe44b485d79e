//! The side of rank 0: accepts the other ranks, and makes their calls.
//!
//! Each connection has a thread. Until it has proved that it has the token, a connection costs a
//! thread for some seconds and no other rank waits for it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::coordinator::Coordinator;
use super::duplicates::{self, Gpu};
use super::fault::{Fault, ranks_text};
use super::handshake::{self, Introduction, MESSAGE_LIMIT};
use super::message::{Request, read_request, write_reply};
use super::rendezvous::Rendezvous;
use super::results::Received;
use super::token::Token;
use super::wait::{Ended, Wait};
use super::wire::{Broken, Closer, Wire};
use crate::api::error::GroupFault;
use crate::core::collective::Call;
use crate::core::collective::Seat;
use crate::lifecycle::fork_guard::Process;

/// The most connections that may be in their handshake; further ones are closed, and ranks try
/// again.
const MAX_HANDSHAKES: usize = 64;

/// Pause between two looks for connections.
const POLL: Duration = Duration::from_millis(5);

/// How long rank 0 tries to listen at an address that is still in use.
const BIND_RETRY: Duration = Duration::from_secs(3);

/// How long the last replies may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long rank 0 waits, when it leaves, for the other ranks to receive what they are due.
const LINGER: Duration = Duration::from_secs(2);

/// The connections of rank 0 to all other ranks.
#[derive(Debug)]
pub(super) struct Server {
    pub coordinator: Arc<Coordinator>,
    connections: Vec<(Closer, JoinHandle<()>)>,
    /// The number of calls of other ranks that are in progress.
    calls: Arc<AtomicUsize>,
    process: Process,
}

/// A rank that has the token.
struct Guest {
    introduction: Introduction,
    wire: Wire,
}

/// Waits until all ranks of the group have joined at the rendezvous.
pub(super) fn open(
    rendezvous: &Rendezvous,
    token: &Token,
    (world, gpu): (usize, Gpu),
    wait: &Wait<'_>,
) -> Result<Server, Fault> {
    let coordinator = Arc::new(Coordinator::new(world));
    let (connections, process) = (Vec::new(), Process::current());
    let mut server = Server { coordinator, connections, calls: Arc::default(), process };
    if world == 1 {
        return Ok(server);
    }
    let listener = listen(rendezvous, wait)?;
    let mut guests = Vec::new();
    let joined = gather(&listener, token, world, wait, &mut guests);
    let outcome = joined.and_then(|()| check_gpus(gpu, &mut guests));
    drop(listener);
    for mut guest in guests {
        let rank = guest.introduction.seat.rank;
        let reply = outcome.as_ref().map(|()| &[][..]).map_err(Clone::clone);
        // A failure is noticed when the rank makes its first call.
        let _ = write_reply(&mut guest.wire, &reply, &Wait { limit: MESSAGE_LIMIT, ..*wait });
        if outcome.is_ok() {
            server.serve(Seat { rank, world }, guest.wire)?;
        }
    }
    outcome.map(|()| server)
}

fn listen(rendezvous: &Rendezvous, wait: &Wait<'_>) -> Result<TcpListener, Fault> {
    let addresses = rendezvous.resolve()?;
    let (start, retry) = (Instant::now(), Wait { limit: wait.limit.min(BIND_RETRY), ..*wait });
    loop {
        let listener = TcpListener::bind(&addresses[..])
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match (listener, retry.ended(start)) {
            (Ok(listener), _) => return Ok(listener),
            (Err(_), Some(Ended::Interrupt)) => return Err(Fault::interrupted(0)),
            // A former group may just be closing it.
            (Err(error), None) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(POLL),
            (Err(error), _) => {
                return Err(rendezvous.fault("cannot be opened by rank 0", Some(&error)));
            }
        }
    }
}

/// Accepts connections until all ranks are among `guests`.
fn gather(
    listener: &TcpListener,
    token: &Token,
    world: usize,
    wait: &Wait<'_>,
    guests: &mut Vec<Guest>,
) -> Result<(), Fault> {
    let (sender, receiver) = channel();
    let handshakes = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    while guests.len() + 1 < world {
        match listener.accept() {
            Ok((stream, address)) => greet(stream, address, token, &sender, &handshakes),
            // Nothing is there, or a connection ended before it was accepted.
            Err(_) => thread::sleep(POLL),
        }
        admit(&receiver, world, guests)?;
        match wait.ended(start) {
            None => {}
            Some(Ended::Interrupt) => return Err(Fault::interrupted(0)),
            Some(Ended::Limit) => return Err(absent(world, guests, wait.limit)),
        }
    }
    Ok(())
}

/// Starts the handshake of a connection on a thread.
fn greet(
    stream: TcpStream,
    address: SocketAddr,
    token: &Token,
    sender: &Sender<Guest>,
    handshakes: &Arc<AtomicUsize>,
) {
    if handshakes.load(Ordering::Relaxed) >= MAX_HANDSHAKES {
        return;
    }
    let Ok(mut wire) = Wire::new(stream) else { return };
    let (token, sender, count) = (token.clone(), sender.clone(), handshakes.clone());
    count.fetch_add(1, Ordering::Relaxed);
    let spawned = thread::Builder::new().name("scry-handshake".to_owned()).spawn(move || {
        match handshake::accept(&mut wire, &token) {
            // The receiver is gone if the group is complete.
            Ok(introduction) => drop(sender.send(Guest { introduction, wire })),
            Err(reason) => {
                log::warn!(target: "scry::group", "rejected a connection from {address}: {reason}");
            }
        }
        count.fetch_sub(1, Ordering::Relaxed);
    });
    if spawned.is_err() {
        handshakes.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds the ranks that have completed their handshake.
fn admit(receiver: &Receiver<Guest>, world: usize, guests: &mut Vec<Guest>) -> Result<(), Fault> {
    while let Ok(guest) = receiver.try_recv() {
        let Seat { rank, world: stated } = guest.introduction.seat;
        let is_taken =
            |rank| rank == 0 || guests.iter().any(|guest| guest.introduction.seat.rank == rank);
        let problem = if stated != world {
            Some(format!("rank {rank} expects {stated} ranks, and rank 0 expects {world}"))
        } else if rank >= world || is_taken(rank) {
            Some(format!("two processes are rank {rank} of {world}"))
        } else {
            None
        };
        // Also if it is rejected: it has to learn why.
        guests.push(guest);
        if let Some(problem) = problem {
            let help = "pass the same number of ranks in every process, and a different rank";
            return Err(Fault::new(GroupFault::Mismatch, [rank], problem, help));
        }
    }
    Ok(())
}

/// Returns the fault of ranks that have not joined in time.
fn absent(world: usize, guests: &[Guest], limit: Duration) -> Fault {
    let has_joined = |rank: &usize| guests.iter().any(|it| it.introduction.seat.rank == *rank);
    let absent: Vec<usize> = (1..world).filter(|rank| !has_joined(rank)).collect();
    let problem = format!("{} did not join within {limit:?}", ranks_text(&absent));
    let help = "see the output of that rank, check that its process was started with the address \
                and the token of the rendezvous, or raise Rendezvous::time_limit";
    Fault::new(GroupFault::Absent, absent, problem, help)
}

/// Sorts the guests by rank, and checks that no two ranks have the same GPU.
fn check_gpus(own: Gpu, guests: &mut [Guest]) -> Result<(), Fault> {
    guests.sort_unstable_by_key(|guest| guest.introduction.seat.rank);
    let others = guests.iter().map(|guest| guest.introduction.gpu);
    duplicates::check(&[own].into_iter().chain(others).collect::<Vec<_>>())
}

impl Server {
    /// Makes a call of rank 0. A fault is returned when the other ranks in calls have received it:
    /// the program may end the process at once, and with it their connections.
    pub(super) fn exchange(
        &self,
        call: &Call,
        data: Vec<u8>,
        wait: &Wait<'_>,
    ) -> Result<Received, Fault> {
        let result = self.coordinator.exchange(0, call, data, wait);
        if result.is_err() && !self.process.has_forked() {
            wait_until(LINGER, || self.calls.load(Ordering::Relaxed) == 0);
        }
        result
    }

    /// Starts the thread that makes the calls of a rank.
    fn serve(&mut self, seat: Seat, wire: Wire) -> Result<(), Fault> {
        let (coordinator, calls) = (self.coordinator.clone(), self.calls.clone());
        let spawned = wire.closer().and_then(|closer| {
            let name = format!("scry-group-{}", seat.rank);
            let serve = move || serve(&coordinator, seat, wire, &calls);
            Ok((closer, thread::Builder::new().name(name).spawn(serve)?))
        });
        match spawned {
            Ok(connection) => {
                self.connections.push(connection);
                Ok(())
            }
            Err(error) => Err(Fault::connection(seat.rank, &format!("failed: {error}"))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.process.has_forked() {
            // The connections are those of the parent, and the threads do not exist.
            std::mem::forget(std::mem::take(&mut self.connections));
            return;
        }
        self.coordinator.leave(0);
        let are_served = || self.connections.iter().all(|(_, thread)| thread.is_finished());
        wait_until(LINGER, are_served);
        // Ranks that wait for others are told, instead of waiting for their time limits.
        self.coordinator.abort(Fault::left(0));
        wait_until(FAREWELL, || self.calls.load(Ordering::Relaxed) == 0);
        self.connections.iter().for_each(|(closer, _)| closer.close());
        for (_, thread) in self.connections.drain(..) {
            // A panic was printed by its thread.
            let _ = thread.join();
        }
    }
}

/// Waits until `is_done`, for at most `limit`.
fn wait_until(limit: Duration, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() && start.elapsed() < limit {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Makes the calls of a rank until it leaves.
fn serve(coordinator: &Coordinator, seat: Seat, mut wire: Wire, calls: &AtomicUsize) {
    let on_panic = AbortOnPanic(coordinator);
    match serve_calls(coordinator, seat, &mut wire, calls) {
        Ok(()) => coordinator.leave(seat.rank),
        Err(fault) => coordinator.abort(fault),
    }
    drop(on_panic);
}

/// Ends the group if the thread panics: no thread would make the calls of its rank.
struct AbortOnPanic<'a>(&'a Coordinator);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abort(Fault::lost(0, "had a panic in a thread that coordinates the group"));
        }
    }
}

fn serve_calls(
    coordinator: &Coordinator,
    seat: Seat,
    wire: &mut Wire,
    calls: &AtomicUsize,
) -> Result<(), Fault> {
    let Seat { rank, world } = seat;
    let broken = |broken: Broken| Fault::connection(rank, &broken.text());
    loop {
        match read_request(wire, world).map_err(broken)? {
            Some(Request::Call { call, limit }) => {
                calls.fetch_add(1, Ordering::Relaxed);
                let served = serve_call(coordinator, seat, wire, &call, limit);
                calls.fetch_sub(1, Ordering::Relaxed);
                served?;
            }
            Some(Request::Progress(progress)) => {
                let result = coordinator.report(rank, &progress);
                let reply = result.as_ref().map(|()| &[][..]).map_err(Clone::clone);
                let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
                write_reply(wire, &reply, &wait).map_err(broken)?;
            }
            Some(Request::Messages(messages)) => coordinator.note_messages(rank, messages),
            Some(Request::Leave) => return Ok(()),
            Some(Request::DeviceFailed) => return Err(Fault::device_failed(rank)),
            Some(Request::Interrupted) => return Err(Fault::interrupted(rank)),
            None => return Err(Fault::protocol(rank, "a request that no rank makes")),
        }
    }
}

fn serve_call(
    coordinator: &Coordinator,
    seat: Seat,
    wire: &mut Wire,
    call: &Call,
    limit: Duration,
) -> Result<(), Fault> {
    let rank = seat.rank;
    let broken = |broken: Broken| Fault::connection(rank, &broken.text());
    let wait = Wait { limit, interrupted: &|| false };
    let length = call.contributed(seat);
    let length = length.ok_or_else(|| Fault::protocol(rank, "an impossible length"))?;
    let data = wire.read_vec(length, &wait).map_err(broken)?;
    let result = coordinator.exchange(rank, call, data, &wait);
    let reply = result.as_ref().map(|it| &**it).map_err(Clone::clone);
    write_reply(wire, &reply, &wait).map_err(broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::dtype::DType;
    use crate::core::collective::Operation;
    use crate::group::message::encode_request;

    /// Lets rank 1 of 2 send these bytes and end. Returns the fault of the group.
    fn fault_after(bytes: &[u8]) -> Fault {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let accepted = listener.accept().expect("it was connected to").0;
        let mut client = Wire::new(client).expect("it is open");
        let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
        client.write(bytes, &wait).expect("it is open");
        drop(client);
        let coordinator = Coordinator::new(2);
        let wire = Wire::new(accepted).expect("it is open");
        serve(&coordinator, Seat { rank: 1, world: 2 }, wire, &AtomicUsize::new(0));
        let barrier =
            Call { operation: Operation::Barrier, dtype: DType::U8, count: 0, on_devices: false };
        coordinator.exchange(0, &barrier, Vec::new(), &wait).expect_err("rank 1 is gone")
    }

    #[test]
    fn garbage_of_ranks_ends_the_group() {
        let fault = fault_after(&[0xee; 200]);
        assert_eq!(fault.problem, "rank 1 sent a request that no rank makes");
        assert_eq!((fault.kind, &*fault.ranks), (GroupFault::Network, &[1][..]));
    }

    /// The request states more elements than any memory has, and none follow.
    #[test]
    fn stated_lengths_are_not_trusted() {
        let operation = Operation::Send { to: 0 };
        let call = Call { operation, dtype: DType::U8, count: usize::MAX / 4, on_devices: false };
        let limit = Duration::from_secs(9);
        let fault = fault_after(&encode_request(&Request::Call { call, limit }));
        assert_eq!(fault.problem, "the connection to rank 1 was closed");
    }

    #[test]
    fn incomplete_requests_are_ends() {
        let fault = fault_after(&encode_request(&Request::Leave)[..5]);
        assert_eq!(fault.problem, "the connection to rank 1 was closed");
        let fault = fault_after(&encode_request(&Request::Leave));
        assert_eq!(fault.problem, "rank 1 has left the group");
        let fault = fault_after(&encode_request(&Request::Interrupted));
        assert_eq!(fault.problem, "rank 1 was interrupted by Device::interrupt");
    }
}
