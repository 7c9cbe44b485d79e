//! The times of repeated runs of a kernel.

use std::time::Duration;

use serde_json::{Value, json};

/// The times of a kernel's runs; there is at least one.
pub struct RunTimes {
    /// Shortest first.
    sorted: Vec<Duration>,
    /// True if the device measured the times; false if they are wall-clock times from submission to
    /// completion.
    pub on_device: bool,
}

impl RunTimes {
    /// Creates it from the times of all runs, each with whether the device measured it.
    pub fn new(times: &[(Duration, bool)]) -> Self {
        let mut sorted: Vec<Duration> = times.iter().map(|(time, _)| *time).collect();
        sorted.sort();
        Self { sorted, on_device: times.iter().all(|(_, on_device)| *on_device) }
    }

    /// Returns the median.
    pub fn median(&self) -> Duration {
        self.quantile(2)
    }

    /// Returns the quantile `quarters / 4`, interpolated linearly.
    fn quantile(&self, quarters: usize) -> Duration {
        let last = self.sorted.len() - 1;
        let (at, fraction) = (last * quarters / 4, (last * quarters % 4) as f64 / 4.0);
        let (low, high) = (self.sorted[at], self.sorted[(at + 1).min(last)]);
        low + (high - low).mul_f64(fraction)
    }

    fn min_max(&self) -> (Duration, Duration) {
        (self.sorted[0], self.sorted[self.sorted.len() - 1])
    }

    /// Returns the name of the clock.
    fn clock(&self) -> &'static str {
        if self.on_device { "device timestamps" } else { "wall clock, submission included" }
    }

    /// Formats one line for people.
    pub fn text(&self) -> String {
        let (min, max) = self.min_max();
        let runs = match self.sorted.len() {
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        };
        let [median, min, max] = [self.median(), min, max].map(time_text);
        let [low, high] = [1, 3].map(|quarters| time_text(self.quantile(quarters)));
        let clock = self.clock();
        format!(
            "{runs}: median {median}, quartiles {low} to {high}, all {min} to {max} ({clock})\n"
        )
    }

    /// Returns JSON for programs, in seconds.
    pub fn to_json(&self) -> Value {
        let (min, max) = self.min_max();
        let quartiles = [1, 3].map(|quarters| self.quantile(quarters).as_secs_f64());
        json!({
            "runs": self.sorted.len(),
            "median": self.median().as_secs_f64(),
            "quartiles": quartiles,
            "min": min.as_secs_f64(),
            "max": max.as_secs_f64(),
            "by_device_timestamps": self.on_device,
        })
    }
}

/// Formats a time with a suitable unit.
fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.001 => format!("{:.2} µs", seconds * 1e6),
        0.001..1.0 => format!("{:.3} ms", seconds * 1e3),
        _ => format!("{seconds:.3} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_times(milliseconds: &[u64]) -> RunTimes {
        let time = |ms: &u64| (Duration::from_millis(*ms), true);
        RunTimes::new(&milliseconds.iter().map(time).collect::<Vec<_>>())
    }

    #[test]
    fn quartiles_match_numpy() {
        assert_eq!(run_times(&[3]).median(), Duration::from_millis(3));
        assert_eq!(run_times(&[4, 1]).median(), Duration::from_micros(2500));
        let five = run_times(&[50, 10, 40, 20, 30]);
        let quartiles = [1, 2, 3].map(|quarters| five.quantile(quarters).as_millis());
        assert_eq!(quartiles, [20, 30, 40]);
        // numpy.percentile([1, 2, 3, 4], [25, 75]) is [1.75, 3.25].
        let four = run_times(&[1, 2, 3, 4]);
        assert_eq!([1, 3].map(|quarters| four.quantile(quarters).as_micros()), [1750, 3250]);
    }

    #[test]
    fn spread_and_clock_are_shown() {
        let text = run_times(&[2, 1, 9]).text();
        let wanted = "3 runs: median 2.000 ms, quartiles 1.500 ms to 5.500 ms, all 1.000 ms to \
                      9.000 ms (device timestamps)\n";
        assert_eq!(text, wanted);
        let mixed = [(Duration::from_micros(5), true), (Duration::from_secs(2), false)];
        let text = RunTimes::new(&mixed).text();
        assert!(text.contains("all 5.00 µs to 2.000 s (wall clock"), "{text}");
    }
}
