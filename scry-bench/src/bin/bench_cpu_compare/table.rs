//! The printed table, and its goals. `alternate.py` parses the rows.

use crate::cases::Case;
use crate::images::ImageCase;
use crate::job::Job;
use crate::latency::Latency;

/// A printed table, with the goals reached and missed so far.
pub struct Table {
    quick: bool,
    /// The name of the peer's rows.
    peer: &'static str,
    reached: usize,
    missed: Vec<String>,
}

impl Table {
    /// Prints the heading.
    pub fn new(quick: bool, peer: &'static str) -> Self {
        println!(
            "\n{:<20} {:>11} {:>15} {:<9} {:>11} {:>8}  {:<14}",
            "kernel", "ours", "", "peer", "its time", "ratio", "goal"
        );
        Self { quick, peer, reached: 0, missed: Vec::new() }
    }

    /// Prints the rows of a kernel, from the seconds of our device, the peer and the Rust loop.
    pub fn case(&mut self, case: &Case, job: &Job, [ours, peer, host]: [f64; 3]) {
        self.ratio(case.name, job, ours, (self.peer, peer), case.goals.peer);
        if let Some(goal) = case.goals.host {
            self.ratio(case.name, job, ours, ("Rust loop", host), goal);
        }
    }

    fn ratio(&mut self, name: &str, job: &Job, ours: f64, (who, theirs): (&str, f64), goal: f64) {
        let ratio = theirs / ours;
        let row = format!(
            "{name:<20} {:>11} {:>15} {who:<9} {:>11} {ratio:>7.2}×",
            readable(ours),
            job.rate(ours),
            readable(theirs)
        );
        self.row(&row, &format!("≥ {goal} ×"), ratio >= goal);
    }

    /// Prints the row of a latency, whose goal is a time.
    pub fn latency(&mut self, latency: &Latency, [ours, peer]: [f64; 2]) {
        let row = format!(
            "{:<20} {:>11} {:>15} {:<9} {:>11} {:>7.2}×",
            latency.name,
            readable(ours),
            "",
            self.peer,
            readable(peer),
            peer / ours
        );
        self.row(&row, &format!("≤ {}", readable(latency.goal)), ours <= latency.goal);
    }

    /// Prints the row of an image, from the seconds of ours and of the reference.
    pub fn image(&mut self, image: &ImageCase, [ours, reference]: [f64; 2]) {
        let row = format!(
            "{:<20} {:>11} {:>15} {:<9} {:>11} {:>7.2}×",
            image.name,
            readable(ours),
            "",
            image.reference,
            readable(reference),
            reference / ours
        );
        let goal = format!("≥ {:.2} ×", 1.0 / image.goal);
        self.row(&row, &goal, ours <= image.goal * reference);
    }

    fn row(&mut self, row: &str, goal: &str, pass: bool) {
        println!("{row}  {goal:<10} {}", if pass { "PASS" } else { "FAIL" });
        if pass {
            self.reached += 1;
        } else {
            self.missed.push(format!("{row}  {goal}"));
        }
    }

    /// Prints the number of goals reached and missed; returns true if all are reached.
    pub fn finish(self) -> bool {
        println!("\n{} goals reached, {} missed", self.reached, self.missed.len());
        self.missed.iter().for_each(|row| println!("  {row}"));
        if self.quick {
            println!("Sizes were small: the goals are meant for the large ones.");
        }
        self.missed.is_empty()
    }
}

/// Formats seconds with a suitable unit.
pub fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}
