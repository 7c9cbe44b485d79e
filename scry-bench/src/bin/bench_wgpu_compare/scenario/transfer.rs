//! Uploads and downloads.

use std::time::Instant;

use anyhow::{Result, bail};

use super::{Bench, increment, timed_run};
use crate::peer::{BufferId, Peer};
use crate::report::{Goal, Rule, Subject};
use crate::stats::Summary;
use scry_bench::data;
use scry_bench::kernels::INCREMENT;

/// Minimum GB/s of transfers of 1 GiB.
const UPLOAD_GOAL: f64 = 45.0;
const DOWNLOAD_GOAL: f64 = 40.0;
/// The same for downloads into a new vector, whose pages may not be mapped yet.
const FRESH_GOAL: f64 = 30.0;

/// Bytes that one measurement transfers, but in 3 to 30 transfers.
const MEASURED_BYTES: usize = 1 << 30;

const FULL: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("64 MiB", 64 << 20), ("1 GiB", 1 << 30)];
const QUICK: [(&str, usize); 3] = [("4 KiB", 4 << 10), ("1 MiB", 1 << 20), ("16 MiB", 16 << 20)];

/// Data of one size on both sides.
struct Transfer {
    /// The data of alternating transfers, which makes a missing transfer visible.
    sources: [Vec<f32>; 2],
    /// Touched memory to read into.
    out: Vec<f32>,
    /// A buffer of each peer, and the index of the source that it contains.
    buffers: Vec<(BufferId, usize)>,
}

pub fn run(bench: &mut Bench) -> Result<()> {
    for (size, bytes) in if bench.quick { QUICK } else { FULL } {
        let n = bytes / size_of::<f32>();
        let subject =
            Subject { bench: "upload", size, bytes: Some(bytes as f64), rule: Rule::NotSlower };
        let sources = [data::random(7, n), data::random(8, n)];
        let buffers = bench.for_each_peer(|peer| Ok((peer.upload(&sources[0])?, 0)))?;
        let mut transfer = Transfer { sources, out: vec![f32::NAN; n], buffers };
        // The CPU clock may have dropped while another library ran, so a measurement covers several
        // transfers.
        let times = (MEASURED_BYTES / bytes).clamp(3, 30);
        let up =
            bench.compare(subject, times, |_, peer| several(times, || transfer.upload(peer)))?;
        let write = Subject { bench: "write", ..subject };
        bench
            .compare(write, times, |index, peer| several(times, || transfer.write(index, peer)))?;
        let into = Subject { bench: "download_into", ..subject };
        let down = bench.compare(into, times, |index, peer| {
            several(times, || transfer.read_into(index, peer))
        })?;
        let fresh = Subject { bench: "download", rule: Rule::Report, ..subject };
        let fresh = bench.compare(fresh, 1, |index, peer| transfer.read(index, peer))?;
        if bytes == 1 << 30 {
            check_goal(bench, "upload", up[0], UPLOAD_GOAL)?;
            check_goal(bench, "download_into", down[0], DOWNLOAD_GOAL)?;
            check_goal(bench, "download", fresh[0], FRESH_GOAL)?;
        }
        bench.clear();
    }
    there_and_back(bench)
}

/// Returns the total seconds of `times` transfers; `None` if the peer does not support them.
fn several(times: usize, mut once: impl FnMut() -> Result<Option<f64>>) -> Result<Option<f64>> {
    let mut sum = 0.0;
    for _ in 0..times {
        match once()? {
            Some(seconds) => sum += seconds,
            None => return Ok(None),
        }
    }
    Ok(Some(sum))
}

fn check_goal(bench: &mut Bench, what: &str, ours: Option<Summary>, goal: f64) -> Result<()> {
    let gbps = ours.map_or(0.0, |ours| f64::from(1 << 30) / ours.median / 1e9);
    bench.report.check_goal(&format!("{what} 1 GiB: GB/s"), gbps, Goal::AtLeast(goal))
}

impl Transfer {
    fn upload(&mut self, peer: &mut dyn Peer) -> Result<Option<f64>> {
        let start = Instant::now();
        let buffer = peer.upload(&self.sources[1])?;
        let seconds = start.elapsed().as_secs_f64();
        peer.free(buffer);
        Ok(Some(seconds))
    }

    fn write(&mut self, index: usize, peer: &mut dyn Peer) -> Result<Option<f64>> {
        let (buffer, source) = &mut self.buffers[index];
        let next = 1 - *source;
        let start = Instant::now();
        let done = peer.write(*buffer, &self.sources[next])?;
        let seconds = start.elapsed().as_secs_f64();
        if done.is_some() {
            *source = next;
        }
        Ok(done.map(|()| seconds))
    }

    fn read_into(&mut self, index: usize, peer: &mut dyn Peer) -> Result<Option<f64>> {
        let (buffer, source) = self.buffers[index];
        self.out.fill(f32::NAN);
        let start = Instant::now();
        let done = peer.read_into(buffer, &mut self.out)?;
        let seconds = start.elapsed().as_secs_f64();
        if done.is_some() {
            check_equal(&self.out, &self.sources[source])?;
        }
        Ok(done.map(|()| seconds))
    }

    fn read(&mut self, index: usize, peer: &mut dyn Peer) -> Result<Option<f64>> {
        let (buffer, source) = self.buffers[index];
        let start = Instant::now();
        let out = peer.read(buffer)?;
        let seconds = start.elapsed().as_secs_f64();
        check_equal(&out, &self.sources[source])?;
        Ok(Some(seconds))
    }
}

fn check_equal(got: &[f32], sent: &[f32]) -> Result<()> {
    if got != sent {
        bail!("{} elements were read, which are not those sent", got.len());
    }
    Ok(())
}

/// Compares round trips of data: 4 KiB to the device, a launch on them, 4 KiB back.
fn there_and_back(bench: &mut Bench) -> Result<()> {
    let input = data::random(9, 1024);
    let mut out = vec![f32::NAN; input.len()];
    let setup = bench.for_each_peer(|peer| {
        let (kernel, buffer) = (peer.compile(INCREMENT)?, peer.upload(&input)?);
        Ok((buffer, peer.plan(&[increment(kernel, buffer, 0, input.len())], true)?))
    })?;
    let subject =
        Subject { bench: "there and back", size: "4 KiB", bytes: None, rule: Rule::NotSlower };
    bench.compare(subject, 1, |index, peer| {
        let (buffer, plan) = setup[index];
        let start = Instant::now();
        if peer.write(buffer, &input)?.is_none() {
            return Ok(None);
        }
        timed_run(peer, plan)?;
        peer.read_into(buffer, &mut out)?;
        let seconds = start.elapsed().as_secs_f64();
        data::check(peer.name(), &out, |i| input[i] + 1.0)?;
        Ok(Some(seconds))
    })?;
    bench.clear();
    Ok(())
}
