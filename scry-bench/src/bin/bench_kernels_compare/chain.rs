//! Chains of dependent launches, as in a model: recorded, with alternating weights that together
//! exceed the caches.

use std::time::Instant;

use anyhow::Result;
use scry_gpu::Recording;
use scry_kernels::Op;

use crate::Bench;
use crate::clock::median;

/// Minimum number of operations of a chain: enough to hide the start and the end of a replay.
const LAUNCHES: usize = 400;

impl Bench {
    /// Records the operations in rotation; returns the recording and its number of operations.
    pub fn record_chain(&self, copies: &[Op]) -> Result<(Recording, usize)> {
        let mut batch = self.kernels.device().batch();
        let rounds = LAUNCHES.div_ceil(copies.len());
        for _ in 0..rounds {
            copies.iter().try_for_each(|prepared| prepared.add_to(&mut batch))?;
        }
        Ok((batch.record()?, rounds * copies.len()))
    }

    /// Returns the median seconds of replays of a recording.
    pub fn median_replay(&self, recording: &Recording) -> Result<f64> {
        replay(recording)?;
        median((0..self.samples).map(|_| replay(recording)).collect::<Result<_>>()?)
    }
}

/// Returns the mean seconds of a replay, over several with one wait, whose latency is a fraction of
/// a millisecond.
pub fn replay(recording: &Recording) -> Result<f64> {
    const REPLAYS: u32 = 4;
    let start = Instant::now();
    for _ in 1..REPLAYS {
        let _ticket = recording.replay()?;
    }
    recording.replay()?.wait()?;
    Ok(start.elapsed().as_secs_f64() / f64::from(REPLAYS))
}
