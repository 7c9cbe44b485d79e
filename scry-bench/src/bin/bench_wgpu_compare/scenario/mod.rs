//! Scenarios, one file each.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::peer::{BufferId, KernelId, Peer, PlanId, Span, Step};
use crate::report::{Report, Subject};
use crate::stats::{Summary, interleaved};

pub mod cold;
mod dispatches;
mod round_trip;
pub mod sanity;
mod saxpy;
mod source;
mod transfer;

/// A scenario: its name for `--only`, its heading, and its function.
pub struct Scenario {
    /// For the command line.
    pub name: &'static str,
    /// One line of explanation.
    pub heading: &'static str,
    /// Measures and reports.
    pub run: fn(&mut Bench) -> Result<()>,
}

/// All scenarios, in the order in which they run.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "round-trip",
        heading: "Round trip: one launch of 64 invocations, and waiting for it",
        run: round_trip::run,
    },
    Scenario {
        name: "dispatches",
        heading: "1000 launches of 256 elements, recorded afresh, waiting included: time of one",
        run: dispatches::run,
    },
    Scenario {
        name: "host",
        heading: "1000 launches: processor time of the calling thread until it waits",
        run: dispatches::host,
    },
    Scenario {
        name: "saxpy",
        heading: "y = a·x + y with vec4, and copies of x by command and by kernel",
        run: saxpy::run,
    },
    Scenario {
        name: "transfer",
        heading: "Transfers between host memory and the device",
        run: transfer::run,
    },
    Scenario {
        name: "source",
        heading: "A kernel given as source again, against one that was kept",
        run: source::run,
    },
    Scenario {
        name: "cold",
        heading: "Start of a process until its first correct result, disk caches warm",
        run: cold::run,
    },
];

/// The context of all scenarios.
pub struct Bench {
    /// Ours first, then wgpu unless it is left out.
    pub peers: Vec<Box<dyn Peer>>,
    /// The destination of the results.
    pub report: Report,
    /// Small sizes, for software devices.
    pub quick: bool,
    /// The selector of our device.
    pub selector: String,
    /// The name of the device, the same for all peers.
    pub device: String,
    /// Measurements per number.
    pub samples: usize,
}

impl Bench {
    /// Measures all peers in interleaved rounds, and reports the time of one of the `count` equal
    /// parts of a measurement.
    pub fn compare(
        &mut self,
        subject: Subject<'_>,
        count: usize,
        once: impl FnMut(usize, &mut dyn Peer) -> Result<Option<f64>>,
    ) -> Result<Vec<Option<Summary>>> {
        let results = interleaved(&mut self.peers, self.samples, once)
            .with_context(|| format!("{} {}", subject.bench, subject.size))?;
        let part = |summary: &Option<Summary>| summary.map(|summary| summary.divided_by(count));
        let results: Vec<Option<Summary>> = results.iter().map(part).collect();
        let names = self.peers.iter().map(|peer| peer.name());
        let named: Vec<_> = names.zip(results.iter().copied()).collect();
        self.report.compare(subject, &named)?;
        Ok(results)
    }

    /// Calls `make` for each peer, and returns the values.
    pub fn for_each_peer<T>(
        &mut self,
        make: impl FnMut(&mut dyn Peer) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut make = make;
        self.peers.iter_mut().map(|peer| make(peer.as_mut())).collect()
    }

    /// Frees the objects of the peers.
    pub fn clear(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.clear());
    }
}

/// Runs a plan, if there is one; returns the seconds, including the wait.
fn timed_run(peer: &mut dyn Peer, plan: Option<PlanId>) -> Result<Option<f64>> {
    let Some(plan) = plan else { return Ok(None) };
    let start = Instant::now();
    peer.run(plan)?;
    Ok(Some(start.elapsed().as_secs_f64()))
}

/// Returns a launch of [`INCREMENT`](scry_bench::kernels::INCREMENT) on some elements of a buffer.
fn increment(kernel: KernelId, buffer: BufferId, start: usize, len: usize) -> Step {
    let groups = [len.div_ceil(scry_bench::kernels::WORKGROUP) as u32, 1];
    Step::Launch { kernel, bindings: vec![Span { buffer, start, len }], groups, immediate: None }
}
