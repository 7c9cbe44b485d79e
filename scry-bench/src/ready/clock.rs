//! How long a computation takes on the device, with nothing of its operands in the caches.
//!
//! One submission fills more memory than the caches hold, and computes: the host hands the launches
//! over while the device is still filling, so that none of its time is in what events around each
//! launch say.

use anyhow::{Context as _, Result};
use scry_gpu::cuda::kernels::Prepared;
use scry_gpu::{Buffer, Device};

use crate::torch::Torch;

/// Bytes of a fill.
const FLUSHED: usize = 256 << 20;

/// Seconds from the end of a launch to the begin of one that waits for it, on an H200: events that
/// stand around each do not tell.
const GAP: f64 = 1e-6;

/// Times computations.
pub struct Clock {
    device: Device,
    flush: Buffer<u32>,
}

impl Clock {
    /// On a device.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { device: device.clone(), flush: device.alloc(FLUSHED / size_of::<u32>())? })
    }

    /// Seconds of one computation.
    pub fn seconds(&self, prepared: &Prepared<'_>) -> Result<f64> {
        let mut batch = self.device.batch();
        batch.fill(&self.flush, 1)?;
        prepared.add_to(&mut batch)?;
        let times = batch.submit_timed()?;
        let gaps = times.len().saturating_sub(1) as f64;
        Ok(times.iter().map(|time| time.as_secs_f64()).sum::<f64>() + gaps * GAP)
    }

    /// Middle of so many measurements, ours and the peer's in turns.
    pub fn compare(
        &self,
        prepared: &Prepared<'_>,
        torch: &mut Torch,
        (name, numbers): (&str, &[usize]),
        samples: usize,
    ) -> Result<[f64; 2]> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for turn in 0..=samples {
            let seconds = [self.seconds(prepared)?, torch.measure(name, numbers)?];
            if turn > 0 {
                ours.push(seconds[0]);
                theirs.push(seconds[1]);
            }
        }
        Ok([median(ours)?, median(theirs)?])
    }
}

/// The middle of some measurements.
pub fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
