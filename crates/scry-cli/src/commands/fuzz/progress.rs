//! The progress of `scry fuzz`: a bar on a terminal, else a line for each event.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::note;

/// The progress of a run, on standard error.
pub(super) struct Progress {
    bar: ProgressBar,
    /// True if nothing is printed, because the output is JSON.
    quiet: bool,
    /// The time when an activity was last printed as a line.
    printed: Cell<Instant>,
}

impl Progress {
    /// The minimum time between activities without a terminal.
    const PERIOD: Duration = Duration::from_secs(10);

    /// Starts the progress of a run of `kernels`.
    pub fn new(kernels: u64, quiet: bool) -> Self {
        let bar = ProgressBar::new(kernels);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let template = "{bar:40} {pos}/{len} kernels, {per_sec}, {eta} left {msg}";
        // The template is a constant; the default style is the fallback.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, quiet, printed: Cell::new(Instant::now()) }
    }

    /// Counts a finished kernel.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Prints a permanent line.
    pub fn line(&self, text: &str) {
        match (self.quiet, self.bar.is_hidden()) {
            (true, _) => {}
            (false, true) => note(text),
            (false, false) => self.bar.println(text),
        }
    }

    /// Shows a long activity: after the bar, or as a line at most every [`Self::PERIOD`].
    pub fn activity(&self, text: String) {
        if self.bar.is_hidden() && !text.is_empty() && self.printed.get().elapsed() >= Self::PERIOD
        {
            self.printed.set(Instant::now());
            self.line(&text);
        }
        self.bar.set_message(text);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// The time limit and the progress of a minimisation.
pub(super) struct MinimisationClock {
    deadline: Option<Instant>,
    tried: u64,
    /// The time of the last report.
    reported: Instant,
}

impl MinimisationClock {
    /// The time between two reports.
    const PERIOD: Duration = Duration::from_secs(1);

    /// Starts the clock.
    pub fn new(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond the clock's range means no limit.
        Self { deadline: now.checked_add(limit), tried: 0, reported: now }
    }

    /// Counts a candidate, and calls `report` at most once per [`Self::PERIOD`]. Returns false once
    /// the time limit has expired.
    pub fn try_next(&mut self, report: impl FnOnce(u64)) -> bool {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return false;
        }
        self.tried += 1;
        if now.duration_since(self.reported) >= Self::PERIOD {
            self.reported = now;
            report(self.tried);
        }
        true
    }
}

/// Formats the progress of a minimisation.
pub(super) fn minimising_text(seed: u64, tried: u64) -> String {
    format!("seed {seed}: minimising the kernel, {tried} candidates tried")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimising_ends_in_time() {
        let mut none = MinimisationClock::new(Duration::ZERO);
        assert!(!none.try_next(|_| ()));
        let mut endless = MinimisationClock::new(Duration::MAX);
        assert!(endless.try_next(|_| ()));
    }

    #[test]
    fn minimising_reports_each_second() {
        let mut clock = MinimisationClock::new(Duration::MAX);
        assert!(clock.try_next(|tried| panic!("{tried} is too early")));
        clock.reported -= MinimisationClock::PERIOD;
        let mut reported = None;
        assert!(clock.try_next(|tried| reported = Some(tried)));
        assert_eq!(reported, Some(2));
    }
}
