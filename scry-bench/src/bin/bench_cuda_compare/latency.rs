//! Launch latency: alone, and as one of many in a replay.

use std::time::Instant;

use anyhow::{Result, ensure};
use scry_gpu::{Device, Recording};

use crate::{Bench, median};
use scry_bench::table::{Goal, Row};

/// Adds one to each element.
const INCREMENT: &str = include_str!("../../kernels/increment.wgsl");

/// Launches in a recording, each dependent on the previous one.
const NODES: usize = 1000;

/// Trips and replays in a measurement.
const TRIPS: usize = 100;
const REPLAYS: usize = 5;

/// Compares round trips and replays.
pub fn run(bench: &mut Bench) -> Result<()> {
    round_trip(bench)?;
    replay(bench)
}

fn round_trip(bench: &mut Bench) -> Result<()> {
    let device = bench.ours.clone();
    let kernel = device.compile(INCREMENT)?;
    let buffer = device.alloc::<f32>(64)?;
    let mut trips = 0;
    let mut ours = || -> Result<f64> {
        let start = Instant::now();
        for _ in 0..TRIPS {
            device.run(&kernel, &[&buffer], 64)?;
            device.wait()?;
        }
        trips += TRIPS;
        Ok(start.elapsed().as_secs_f64() / TRIPS as f64)
    };
    let (mut times, mut peer) = (Vec::new(), Vec::new());
    for round in 0..=bench.samples {
        let now = [ours()?, bench.torch.measure("round_trip", &[TRIPS])?];
        if round > 0 {
            times.push(now[0]);
            peer.push(now[1]);
        }
    }
    let expected = vec![trips as f32; 64];
    ensure!(buffer.download()? == expected, "some of {trips} launches did nothing");
    bench.table.row(&Row {
        name: "round trip, 64 elements",
        rate: String::new(),
        ours: median(times),
        peer: "PyTorch",
        theirs: median(peer),
        goal: Goal::AtLeast(1.0),
    });
    Ok(())
}

fn record(device: &Device, buffer: &scry_gpu::Buffer<f32>) -> Result<Recording> {
    let kernel = device.compile(INCREMENT)?;
    let mut batch = device.batch();
    for _ in 0..NODES {
        batch.run(&kernel, &[buffer], buffer.len())?;
    }
    Ok(batch.record()?)
}

fn replay(bench: &mut Bench) -> Result<()> {
    let device = bench.ours.clone();
    let buffer = device.alloc::<f32>(256)?;
    let recording = record(&device, &buffer)?;
    let (mut times, mut peer) = (Vec::new(), Vec::new());
    for round in 0..=bench.samples {
        let start = Instant::now();
        for _ in 0..REPLAYS {
            recording.replay()?.wait()?;
        }
        let ours = start.elapsed().as_secs_f64() / (REPLAYS * NODES) as f64;
        let theirs = bench.torch.measure("graph", &[NODES, REPLAYS])?;
        if round > 0 {
            times.push(ours);
            peer.push(theirs);
        }
    }
    let launches = (bench.samples + 1) * REPLAYS * NODES;
    let expected = vec![launches as f32; 256];
    ensure!(buffer.download()? == expected, "some of {launches} launches did nothing");
    bench.table.row(&Row {
        name: "replay of 1000 launches, each",
        rate: String::new(),
        ours: median(times),
        peer: "CUDA graph",
        theirs: median(peer),
        // At most 1.3 of its time.
        goal: Goal::AtLeast(1.0 / 1.3),
    });
    Ok(())
}
