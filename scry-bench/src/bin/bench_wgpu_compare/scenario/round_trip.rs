//! One small launch and waiting for it.

use anyhow::Result;

use super::{Bench, increment, timed_run};
use crate::report::{Rule, Subject};
use scry_bench::data;
use scry_bench::kernels::INCREMENT;

const LEN: usize = 64;
const GOAL: f64 = 0.5;
/// Trips in one measurement.
const TRIPS: usize = 20;

pub fn run(bench: &mut Bench) -> Result<()> {
    let input = data::random(1, LEN);
    let setup = bench.for_each_peer(|peer| {
        let (kernel, buffer) = (peer.compile(INCREMENT)?, peer.upload(&input)?);
        Ok((buffer, peer.plan(&[increment(kernel, buffer, 0, LEN)], true)?))
    })?;
    let mut trips = 0usize;
    let subject =
        Subject { bench: "round trip", size: "64", bytes: None, rule: Rule::AtMost(GOAL) };
    bench.compare(subject, TRIPS, |index, peer| {
        trips += if index == 0 { TRIPS } else { 0 };
        let mut seconds = Some(0.0);
        for _ in 0..TRIPS {
            let trip = timed_run(peer, setup[index].1)?;
            seconds = seconds.zip(trip).map(|(sum, trip)| sum + trip);
        }
        Ok(seconds)
    })?;
    for (peer, (buffer, plan)) in bench.peers.iter_mut().zip(&setup) {
        if plan.is_some() {
            data::check("round trip", &peer.read(*buffer)?, |i| input[i] + trips as f32)?;
        }
    }
    bench.clear();
    Ok(())
}
