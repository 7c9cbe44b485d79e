//! Time of a computation on the device: a small one with nothing of its operands in the
//! caches, a large one with what the same computation left there.
//!
//! One submission fills more memory than the caches hold, or computes the same before, and
//! computes: the host hands the launches over while the device is still busy, so that none of its
//! time is in what events around each launch say.

use anyhow::{Context as _, Result};
use scry_gpu::cuda::kernels::PreparedOp;
use scry_gpu::{Buffer, Device};

use scry_bench::torch::Torch;

/// Bytes of a fill.
const FLUSHED: usize = 256 << 20;

/// Operands and results of fewer bytes would still be cached at the next use.
const SMALL: usize = 60_000_000;

/// Computations before the one that is measured, where nothing is flushed.
const BEFORE: usize = 4;

/// Seconds from the end of a launch to the begin of one that waits for it, on an H200: events that
/// stand around each do not tell.
const GAP: f64 = 1e-6;

/// Contents of the caches when a computation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// None of its memory.
    Flushed,
    /// The memory of the previous run of the same computation.
    Used,
}

impl Caches {
    /// How a computation with `bytes` of operands and results is measured.
    pub fn of(bytes: usize) -> Self {
        if bytes < SMALL { Self::Flushed } else { Self::Used }
    }

    /// The rule as text.
    pub fn rule() -> String {
        let (small, flush) = (SMALL / 1_000_000, FLUSHED >> 20);
        format!(
            "caches: flushed, by a fill of {flush} MiB, before operands and results of less than \
             {small} MB;\nlarger ones were used {BEFORE} times by the same computation right before"
        )
    }

    /// Whether the other way to measure may give another result for `bytes`.
    pub fn matter(bytes: usize) -> bool {
        bytes < FLUSHED
    }

    /// The name in requests to the peer.
    const fn name(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::Used => "used",
        }
    }
}

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
    pub fn seconds(&self, prepared: &PreparedOp<'_>, caches: Caches) -> Result<f64> {
        let mut batch = self.device.batch();
        let before = match caches {
            Caches::Flushed => 0,
            Caches::Used => BEFORE,
        };
        if caches == Caches::Flushed {
            batch.fill(&self.flush, 1)?;
        }
        (0..=before).try_for_each(|_| prepared.add_to(&mut batch))?;
        let times = batch.submit_timed()?;
        let times = &times[times.len() - times.len() / (before + 1)..];
        let gaps = times.len().saturating_sub(1) as f64;
        Ok(times.iter().map(|time| time.as_secs_f64()).sum::<f64>() + gaps * GAP)
    }

    /// Median of `count` interleaved measurements of ours and of the peer.
    pub fn compare(
        &self,
        prepared: &PreparedOp<'_>,
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

/// The median of some measurements.
pub fn median(mut values: Vec<f64>) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("there are no measurements")
}
