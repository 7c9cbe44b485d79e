//! How long a computation takes, with nothing of its operands in the caches.
//!
//! A recording does it some times, with a fill of more memory than the caches hold before each; a
//! second recording is of the fills alone. The difference is the computation's, the waiting of its
//! launches for each other included.

use std::time::Instant;

use anyhow::{Context as _, Result};
use scry_gpu::cuda::kernels::Prepared;
use scry_gpu::{Buffer, Device, Recording};

use crate::number::Number;
use crate::torch::Torch;

/// Computations in a recording.
const REPEATS: usize = 8;

/// Bytes of a fill.
const FLUSHED: usize = 128 << 20;

/// Times a computation.
pub struct Clock {
    with: Recording,
    without: Recording,
}

impl Clock {
    /// Of what was prepared, which writes `out` whatever is there.
    pub fn new<T: Number>(
        device: &Device,
        prepared: &Prepared<'_>,
        out: &Buffer<T>,
    ) -> Result<Self> {
        let flush = device.alloc::<T>(FLUSHED / size_of::<T>())?;
        let record = |prepared: Option<&Prepared<'_>>| -> Result<Recording> {
            let mut batch = device.batch();
            for _ in 0..REPEATS {
                batch.fill(&flush, T::of(0.0))?;
                // What computes `out` has to wait for this, and this for the fill.
                let few = out.len().min(4);
                batch.copy_slice(&flush.slice(..few)?, &out.slice(..few)?)?;
                prepared.map_or(Ok(()), |prepared| prepared.add_to(&mut batch))?;
            }
            Ok(batch.record()?)
        };
        Ok(Self { with: record(Some(prepared))?, without: record(None)? })
    }

    /// Seconds of one computation.
    pub fn seconds(&self) -> Result<f64> {
        Ok((time(&self.with)? - time(&self.without)?) / REPEATS as f64)
    }

    /// Middle of so many measurements, ours and the peer's in turns.
    pub fn compare(
        &self,
        torch: &mut Torch,
        (name, numbers): (&str, &[usize]),
        samples: usize,
    ) -> Result<[f64; 2]> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for turn in 0..=samples {
            let seconds = [self.seconds()?, torch.measure(name, numbers)?];
            if turn > 0 {
                ours.push(seconds[0]);
                theirs.push(seconds[1]);
            }
        }
        Ok([median(ours)?, median(theirs)?])
    }
}

fn time(recording: &Recording) -> Result<f64> {
    let start = Instant::now();
    recording.replay()?.wait()?;
    Ok(start.elapsed().as_secs_f64())
}

/// The middle of some measurements.
pub fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
