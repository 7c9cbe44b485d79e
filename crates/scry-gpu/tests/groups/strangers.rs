//! Strangers at the rendezvous, and ranks that send garbage.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use scry_test_support::succeed;

use crate::support::{LONG, join, over_tcp};

/// Connects, as soon as rank 0 listens.
fn connect(address: &str) -> TcpStream {
    let start = Instant::now();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) if start.elapsed() > LONG => panic!("{error}"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Forms a group of two ranks, while `strangers` connections do what `act` says.
fn form_among(strangers: usize, act: impl Fn(usize, &mut TcpStream) + Sync) -> Duration {
    let durations = over_tcp(2, |address, rank| {
        let mut connections = Vec::new();
        if rank == 1 {
            for index in 0..strangers {
                let mut stream = connect(address);
                act(index, &mut stream);
                connections.push(stream);
            }
        }
        let start = Instant::now();
        let group = succeed(join(address, rank, 2, LONG));
        let duration = start.elapsed();
        succeed(group.barrier());
        drop(connections);
        duration
    });
    durations[1]
}

#[test]
fn silent_strangers_do_not_block() {
    let duration = form_among(20, |_, _| ());
    assert!(duration < Duration::from_secs(20), "{duration:?}");
}

#[test]
fn garbage_does_not_block() {
    let duration = form_among(20, |index, stream| {
        let byte = [0x00, 0xff, b'G', 0x89][index % 4];
        // The other side may have closed the connection after the first bytes.
        let _ = stream.write_all(&vec![byte; 1 << (index % 16)]);
        if index % 3 == 0 {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    });
    assert!(duration < Duration::from_secs(20), "{duration:?}");
}

/// A stranger that begins like a rank gets nonce and proof of the server, and no further: its
/// connection is closed after its wrong proof, and it is not a rank.
#[test]
fn strangers_without_a_token_are_not_admitted() {
    let duration = form_among(3, |_, stream| {
        let hello = [&b"\x89scrygrp"[..], &2u32.to_le_bytes(), &[7; 16]].concat();
        stream.write_all(&hello).unwrap();
        let mut answer = [0; 44];
        stream.read_exact(&mut answer).unwrap();
        let introduction = [&1u32.to_le_bytes()[..], &2u32.to_le_bytes(), &[0; 34]].concat();
        stream.write_all(&[&introduction[..], &answer[28..]].concat()).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "the connection is closed");
    });
    assert!(duration < Duration::from_secs(20), "{duration:?}");
}

/// More silent connections than handshakes are served at a time: ranks join when those have timed
/// out.
#[test]
#[ignore = "it waits 5 s"]
fn many_silent_strangers_delay_ranks() {
    let duration = form_among(200, |_, _| ());
    assert!(duration < Duration::from_secs(30), "{duration:?}");
}

/// When all ranks have joined, the port is closed.
#[test]
fn the_rendezvous_is_closed_afterwards() {
    over_tcp(2, |address, rank| {
        let group = succeed(join(address, rank, 2, LONG));
        succeed(group.barrier());
        assert!(TcpStream::connect(address).is_err());
        succeed(group.barrier());
    });
}
