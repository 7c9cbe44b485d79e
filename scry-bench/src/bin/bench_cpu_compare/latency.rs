//! Latencies with an upper limit: compilation and empty launches.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use scry_gpu::Device;

use crate::cases::coarse;
use crate::job::median;
use scry_bench::data;

/// A latency with an upper limit.
pub struct Latency {
    /// For the command line.
    pub name: &'static str,
    /// The limit for our device, in seconds.
    pub goal: f64,
    /// Measures once on a device in the given round; returns seconds.
    once: fn(&Device, usize) -> Result<f64>,
}

/// All latencies.
pub const ALL: &[Latency] = &[
    Latency { name: "compile-and-launch", goal: 1e-3, once: compile_and_launch },
    Latency { name: "empty-dispatch", goal: 5e-6, once: empty_dispatch },
];

/// Elements of the small kernel.
const LEN: usize = 1000;
/// Empty launches of one measurement.
const LAUNCHES: u32 = 1000;

impl Latency {
    /// Returns the median seconds of both devices, interleaved. There are `4 * samples` rounds,
    /// since they are short; one more, the first, is not counted.
    pub fn compare(&self, devices: [&Device; 2], samples: usize) -> Result<[f64; 2]> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=4 * samples {
            for (times, device) in times.iter_mut().zip(devices) {
                let time = (self.once)(device, round).context(self.name)?;
                if round > 0 {
                    times.push(time);
                }
            }
        }
        Ok(times.map(median))
    }
}

/// Compiles a source that no cache contains, and launches the kernel once.
fn compile_and_launch(device: &Device, round: usize) -> Result<f64> {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    // A multiple of 2⁻⁹ below 2¹¹, and squares are multiples of 2⁻⁸: the sums below are exact.
    let nonce = ((nanos % 500_000) * 2 + round as u32 % 2 + 1) as f32 / 512.0;
    let source = include_str!("kernels/fresh.wgsl").replace("NONCE", &format!("{nonce:?}"));
    let x = coarse(8, LEN);
    let (input, output) = (device.upload(&x)?, device.upload(&vec![f32::NAN; LEN])?);
    device.wait()?;
    let start = Instant::now();
    let kernel = device.compile(&source)?;
    device.run(&kernel, &[&input, &output], LEN)?;
    device.wait()?;
    let seconds = start.elapsed().as_secs_f64();
    data::check("fresh", &output.download()?, |i| x[i] * x[i] + nonce)?;
    Ok(seconds)
}

/// Returns the mean time of many empty launches, each followed by a wait.
fn empty_dispatch(device: &Device, _: usize) -> Result<f64> {
    let kernel = device.compile(include_str!("kernels/empty.wgsl"))?;
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        device.run(&kernel, &[], 1)?;
        device.wait()?;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(LAUNCHES))
}
