//! Device time of an operation: with cold caches if it is small, and with the cache contents that
//! its previous run left if it is large.
//!
//! One submission first flushes the caches by a fill, or runs the operation several times, and then
//! runs the operation to be measured. The host submits while the device is still busy, and so the
//! events around each launch exclude host time.

use anyhow::{Context as _, Result};
use scry_gpu::{Buffer, Device};
use scry_kernels::Op;

use scry_bench::torch::Torch;

/// Bytes of the fill that flushes the caches: more than the L2 cache has.
const FLUSH_BYTES: usize = 256 << 20;

/// Operations with fewer bytes of operands and results may find them in the L2 cache.
const SMALL_BYTES: usize = 60_000_000;

/// Warm-up runs before the measured one if the caches are not flushed.
const WARM_UPS: usize = 4;

/// Seconds from the end of a launch to the start of a dependent one, on an H200. Events around each
/// launch do not include it.
const LAUNCH_GAP: f64 = 1e-6;

/// The state of the caches when an operation starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// Cold: none of its operands are cached.
    Flushed,
    /// As after the previous run of the same operation.
    Used,
}

impl Caches {
    /// Returns the state in which an operation with `bytes` of operands and results is measured.
    pub fn for_bytes(bytes: usize) -> Self {
        if bytes < SMALL_BYTES { Self::Flushed } else { Self::Used }
    }

    /// Describes how the state is chosen, for the output.
    pub fn rule() -> String {
        let (small, flush) = (SMALL_BYTES / 1_000_000, FLUSH_BYTES >> 20);
        format!(
            "caches: flushed by a fill of {flush} MiB if operands and results are smaller than \
             {small} MB;\nelse warmed by {WARM_UPS} runs of the same operation"
        )
    }

    /// Returns whether the state of the caches may affect an operation with `bytes`.
    pub fn may_affect(bytes: usize) -> bool {
        bytes < FLUSH_BYTES
    }

    /// Returns the name in requests to the peer.
    const fn name(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::Used => "used",
        }
    }
}

/// Measures operations.
pub struct Clock {
    device: Device,
    flush: Buffer<u32>,
}

impl Clock {
    /// Creates a clock for a device.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { device: device.clone(), flush: device.alloc(FLUSH_BYTES / size_of::<u32>())? })
    }

    /// Returns the seconds of one operation.
    pub fn seconds(&self, prepared: &Op, caches: Caches) -> Result<f64> {
        let mut batch = self.device.batch();
        let warm_ups = match caches {
            Caches::Flushed => 0,
            Caches::Used => WARM_UPS,
        };
        if caches == Caches::Flushed {
            batch.fill(&self.flush, 1)?;
        }
        (0..=warm_ups).try_for_each(|_| prepared.add_to(&mut batch))?;
        let times = batch.submit_timed()?;
        let times = &times[times.len() - times.len() / (warm_ups + 1)..];
        let gaps = times.len().saturating_sub(1) as f64;
        Ok(times.iter().map(|time| time.as_secs_f64()).sum::<f64>() + gaps * LAUNCH_GAP)
    }

    /// Returns the medians of `samples` interleaved measurements, ours and the peer's.
    pub fn compare(
        &self,
        prepared: &Op,
        torch: &mut Torch,
        (name, numbers): (&str, &[usize]),
        caches: Caches,
        samples: usize,
    ) -> Result<[f64; 2]> {
        let name = format!("{} {name}", caches.name());
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=samples {
            let seconds = [self.seconds(prepared, caches)?, torch.measure(&name, numbers)?];
            if round > 0 {
                ours.push(seconds[0]);
                theirs.push(seconds[1]);
            }
        }
        Ok([median(ours)?, median(theirs)?])
    }
}

/// Returns the median; an error if there are no values.
pub fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
