//! Repeated measurements and how they are printed.

use std::time::{Duration, Instant};

/// The middle of many measurements, and how far the rest strays, in seconds.
#[derive(Clone, Copy)]
pub struct Summary {
    /// Half of the measurements are shorter.
    pub median: f64,
    /// A tenth of the measurements are shorter.
    pub p10: f64,
    /// Nine tenths of the measurements are shorter.
    pub p90: f64,
}

impl Summary {
    /// Sorts and picks.
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
        Self { median: at(0.5), p10: at(0.1), p90: at(0.9) }
    }

    /// As text, in the unit that suits the median.
    pub fn times(self) -> String {
        let text = |seconds: f64| format!("{:.2?}", Duration::from_secs_f64(seconds));
        format!("{} ({} to {})", text(self.median), text(self.p10), text(self.p90))
    }
}

/// Runs `work` `samples` times, after once unmeasured.
pub fn measure<E>(samples: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<Summary, E> {
    work()?;
    let mut seconds = Vec::with_capacity(samples);
    for _ in 0..samples {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(Summary::of(seconds))
}
