//! The first messages of a connection: both sides prove that they have the token, and the client
//! introduces itself.
//!
//! ```text
//! client: magic [8] | version u32 | nonce [16]
//! server: magic [8] | version u32 | nonce [16] | proof [16]
//! client: rank u32 | world u32 | has GPU u8 | UUID of the GPU [16] | knows host u8 | host [16]
//!         | proof [16]
//! ```
//!
//! Magic, version and lengths of the first two messages are the same in all versions. All messages
//! have fixed lengths, so that a stranger decides nothing about memory.

use std::time::Duration;

use super::duplicates::Gpu;
use super::fault::Fault;
use super::token::{PROOF_SIZE, Side, Token, are_equal, nonce};
use super::wait::Wait;
use super::wire::{Broken, Wire};
use crate::api::error::GroupFault;
use crate::core::collective::Seat;

/// The longest time between two messages of a handshake.
pub(super) const MESSAGE_LIMIT: Duration = Duration::from_secs(5);

const MAGIC: [u8; 8] = *b"\x89scrygrp";

/// Version of the messages, those of [`message`](super::message) included.
const VERSION: u32 = 2;

const HELLO_SIZE: usize = 28;
const FACTS_SIZE: usize = 42;

/// A rank as it introduces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Introduction {
    pub seat: Seat,
    pub gpu: Gpu,
}

/// Why a client has not joined.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotJoined {
    /// The connection ended before the server answered: it may be too busy, and is tried again.
    Retry(Broken),
    /// Trying again is of no use.
    Fault(Fault),
}

/// Serves a client. Returns its introduction, or why it is rejected.
pub(super) fn accept(wire: &mut Wire, token: &Token) -> Result<Introduction, String> {
    let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
    let broken = |broken: Broken| format!("the connection {}", broken.text());
    let mut theirs = [0; HELLO_SIZE];
    wire.read(&mut theirs, &wait).map_err(broken)?;
    let Some(version) = version_of(&theirs) else {
        return Err("it is not a rank of a group".to_owned());
    };
    let ours = hello();
    let proof = token.proof(Side::Server, &[&theirs, &ours]);
    wire.write(&[&ours[..], &proof].concat(), &wait).map_err(broken)?;
    if version != VERSION {
        return Err(format!("it has version {version} of the protocol, this rank {VERSION}"));
    }
    let mut introduction = [0; FACTS_SIZE + PROOF_SIZE];
    wire.read(&mut introduction, &wait).map_err(broken)?;
    let (facts, proof) = introduction.split_at(FACTS_SIZE);
    let expected = token.proof(Side::Client, &[&theirs, &ours, facts]);
    match proof.try_into() {
        Ok(proof) if are_equal(proof, &expected) => Ok(decode(facts)),
        _ => Err("it does not have the token".to_owned()),
    }
}

/// Introduces a client to the server.
pub(super) fn introduce(
    wire: &mut Wire,
    token: &Token,
    introduction: &Introduction,
    wait: &Wait<'_>,
) -> Result<(), NotJoined> {
    let rank = introduction.seat.rank;
    let ours = hello();
    let not_joined = |broken| match broken {
        Broken::Interrupted => NotJoined::Fault(Fault::interrupted(rank)),
        other => NotJoined::Retry(other),
    };
    wire.write(&ours, wait).map_err(not_joined)?;
    let mut answer = [0; HELLO_SIZE + PROOF_SIZE];
    wire.read(&mut answer, wait).map_err(not_joined)?;
    let (theirs, proof) = answer.split_at(HELLO_SIZE);
    let version = theirs.try_into().ok().and_then(version_of);
    if version != Some(VERSION) {
        return Err(NotJoined::Fault(other_version(rank, version)));
    }
    let expected = token.proof(Side::Server, &[&ours, theirs]);
    if !proof.try_into().is_ok_and(|proof| are_equal(proof, &expected)) {
        return Err(NotJoined::Fault(other_token(rank)));
    }
    let facts = encode(introduction);
    let proof = token.proof(Side::Client, &[&ours, theirs, &facts]);
    wire.write(&[&facts[..], &proof].concat(), wait).map_err(not_joined)
}

fn hello() -> [u8; HELLO_SIZE] {
    let mut bytes = [0; HELLO_SIZE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..].copy_from_slice(&nonce());
    bytes
}

fn version_of(hello: &[u8; HELLO_SIZE]) -> Option<u32> {
    let version = hello[8..12].try_into().map(u32::from_le_bytes).ok()?;
    (hello[..8] == MAGIC).then_some(version)
}

fn encode(introduction: &Introduction) -> [u8; FACTS_SIZE] {
    let Introduction { seat, gpu } = introduction;
    let mut bytes = [0; FACTS_SIZE];
    bytes[..4].copy_from_slice(&(seat.rank as u32).to_le_bytes());
    bytes[4..8].copy_from_slice(&(seat.world as u32).to_le_bytes());
    for (at, identity) in [(8, gpu.uuid), (25, gpu.host)] {
        if let Some(identity) = identity {
            bytes[at] = 1;
            bytes[at + 1..at + 17].copy_from_slice(&identity);
        }
    }
    bytes
}

fn decode(facts: &[u8]) -> Introduction {
    let number = |at: usize| {
        let bytes = facts[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    };
    let identity =
        |at: usize| (facts[at] == 1).then(|| facts[at + 1..at + 17].try_into().expect("16 bytes"));
    let seat = Seat { rank: number(0), world: number(4) };
    Introduction { seat, gpu: Gpu { uuid: identity(8), pci: None, host: identity(25) } }
}

fn other_version(rank: usize, version: Option<u32>) -> Fault {
    match version {
        Some(version) => Fault::new(
            GroupFault::Mismatch,
            [0, rank],
            format!(
                "rank 0 has version {version} of the protocol of groups, and rank {rank} version \
                 {VERSION}"
            ),
            "run the same version of scry-gpu on every rank",
        ),
        None => Fault::new(
            GroupFault::Network,
            [],
            "another program answers at the address of the rendezvous",
            "choose a port that no other program uses",
        ),
    }
}

fn other_token(rank: usize) -> Fault {
    Fault::new(
        GroupFault::Token,
        [0, rank],
        format!("rank 0 and rank {rank} have different tokens"),
        "set SCRY_TOKEN to the same secret on every rank; `scry launch` does",
    )
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text.to_owned())
    }

    fn pair() -> (Wire, Wire) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a loopback interface");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let server = listener.accept().expect("it was connected to").0;
        let wire = |stream| Wire::new(stream).expect("it is open");
        (wire(client), wire(server))
    }

    fn introduction() -> Introduction {
        let (uuid, host) = (Some(*b"0123456789abcdef"), Some(*b"fedcba9876543210"));
        let gpu = Gpu { uuid, pci: None, host };
        Introduction { seat: Seat { rank: 2, world: 70_000 }, gpu }
    }

    fn run(
        client: &Token,
        server: &Token,
    ) -> (Result<(), NotJoined>, Result<Introduction, String>) {
        let (mut client_wire, mut server_wire) = pair();
        thread::scope(|scope| {
            let served = scope.spawn(move || accept(&mut server_wire, server));
            let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
            let joined = introduce(&mut client_wire, client, &introduction(), &wait);
            drop(client_wire);
            (joined, served.join().expect("no panic"))
        })
    }

    #[test]
    fn equal_tokens_are_accepted() {
        let (joined, served) = run(&token("0123456789abcdef"), &token("0123456789abcdef"));
        assert_eq!((joined, served), (Ok(()), Ok(introduction())));
    }

    #[test]
    fn other_tokens_are_rejected() {
        let (joined, served) = run(&token("0123456789abcdef"), &token("0123456789abcdeF"));
        let Err(NotJoined::Fault(fault)) = joined else { panic!("{joined:?}") };
        assert_eq!(fault.problem, "rank 0 and rank 2 have different tokens");
        assert_eq!(served, Err("the connection was closed".to_owned()));
    }

    /// A client that does not check the server's proof, and guesses its own.
    #[test]
    fn clients_without_a_token_are_rejected() {
        let (mut client, mut server) = pair();
        let served = thread::spawn(move || accept(&mut server, &token("0123456789abcdef")));
        let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
        client.write(&hello(), &wait).expect("it is open");
        client.read(&mut [0; HELLO_SIZE + PROOF_SIZE], &wait).expect("the server answers");
        let guess = [&encode(&introduction())[..], &[0; PROOF_SIZE]].concat();
        client.write(&guess, &wait).expect("it is open");
        let served = served.join().expect("no panic");
        assert_eq!(served, Err("it does not have the token".to_owned()));
    }

    #[test]
    fn strangers_and_other_versions_are_rejected() {
        let serve = |hello: [u8; HELLO_SIZE]| {
            let (mut client, mut server) = pair();
            let wait = Wait { limit: MESSAGE_LIMIT, interrupted: &|| false };
            client.write(&hello, &wait).expect("it is open");
            accept(&mut server, &token("0123456789abcdef"))
        };
        assert_eq!(
            serve(*b"GET / HTTP/1.1\r\nHost: here\r\n"),
            Err("it is not a rank of a group".into())
        );
        let mut newer = hello();
        newer[8] = 3;
        let text = "it has version 3 of the protocol, this rank 2";
        assert_eq!(serve(newer), Err(text.to_owned()));
    }
}
