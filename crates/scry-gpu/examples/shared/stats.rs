//! Statistics of repeated measurements.

use std::time::{Duration, Instant};

/// Median and percentiles of measurements, in seconds.
#[derive(Clone, Copy)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The 10th percentile.
    pub p10: f64,
    /// The 90th percentile.
    pub p90: f64,
}

impl Summary {
    /// Summarises measurements; `None` if there are none.
    pub fn from_seconds(mut seconds: Vec<f64>) -> Option<Self> {
        if seconds.is_empty() {
            return None;
        }
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
        Some(Self { median: at(0.5), p10: at(0.1), p90: at(0.9) })
    }

    /// Formats median and percentiles with their units.
    pub fn times(self) -> String {
        let text = |seconds: f64| format!("{:.2?}", Duration::from_secs_f64(seconds));
        format!("{} ({} to {})", text(self.median), text(self.p10), text(self.p90))
    }
}

/// Measures `samples` ≥ 1 runs of `work`, after one warm-up run.
pub fn measure<E>(samples: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Summary, E> {
    work()?;
    let mut seconds = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(Summary::from_seconds(seconds).expect("there is at least one sample"))
}
