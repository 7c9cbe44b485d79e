//! Repeated, interleaved measurements.

use std::time::Duration;

use anyhow::Result;

use crate::peer::Peer;

/// Rounds that are not measured.
const WARM_UP: usize = 3;

/// Median and percentiles of many measurements, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The 10th percentile.
    pub p10: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The number of measurements.
    pub samples: usize,
}

impl Summary {
    /// Returns the summary of the measurements; `None` if there are none.
    pub fn from_seconds(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let samples = values.len();
        let last = samples.checked_sub(1)?;
        let at = |share: f64| values[(last as f64 * share).round() as usize];
        Some(Self { median: at(0.5), p10: at(0.1), p90: at(0.9), samples })
    }

    /// Returns the summary of the measurements of all rounds, without the warm-up.
    pub fn after_warm_up(mut rounds: Vec<f64>) -> Option<Self> {
        rounds.drain(..WARM_UP.min(rounds.len()));
        Self::from_seconds(rounds)
    }

    /// Divides all times by `count`, the number of equal parts of a measurement.
    pub fn divided_by(self, count: usize) -> Self {
        let part = |value: f64| value / count as f64;
        Self { median: part(self.median), p10: part(self.p10), p90: part(self.p90), ..self }
    }
}

/// Interleaves the measurements of all peers: one of each, then the next of each. `once` returns
/// its measurement, in seconds, or `None` if the peer does not support the operation.
pub fn interleaved(
    peers: &mut [Box<dyn Peer>],
    samples: usize,
    mut once: impl FnMut(usize, &mut dyn Peer) -> Result<Option<f64>>,
) -> Result<Vec<Option<Summary>>> {
    let mut measured = vec![Vec::with_capacity(samples); peers.len()];
    for round in 0..WARM_UP + samples {
        for (index, peer) in peers.iter_mut().enumerate() {
            match once(index, peer.as_mut())? {
                Some(seconds) if round >= WARM_UP => measured[index].push(seconds),
                _ => {}
            }
        }
    }
    Ok(measured.into_iter().map(Summary::from_seconds).collect())
}

/// Returns the CPU time of the calling thread so far.
#[cfg(unix)]
pub fn thread_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(now).expect("CPU time is not negative")
}

/// Returns the wall-clock time so far: here the system does not report CPU times of threads.
#[cfg(not(unix))]
pub fn thread_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_ignore_the_order() {
        let values: Vec<f64> = (0..=10).rev().map(f64::from).collect();
        let summary = Summary::from_seconds(values).unwrap();
        assert_eq!((summary.p10, summary.median, summary.p90), (1.0, 5.0, 9.0));
        assert_eq!((summary.divided_by(5).median, summary.samples), (1.0, 11));
        assert_eq!(Summary::from_seconds(Vec::new()), None);
    }

    #[test]
    fn warm_up_rounds_are_left_out() {
        let summary = Summary::after_warm_up(vec![9.0, 9.0, 9.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((summary.median, summary.p90, summary.samples), (2.0, 3.0, 3));
        assert_eq!(Summary::after_warm_up(vec![9.0]), None);
    }
}
