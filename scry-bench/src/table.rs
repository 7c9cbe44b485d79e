//! The printed table, and its goals. `alternate.py` parses the rows.

/// A goal for the ratio of times, the peer's over ours.
#[derive(Clone, Copy)]
pub enum Goal {
    /// No goal.
    None,
    /// Minimum ratio.
    AtLeast(f64),
}

/// A printed table, with the goals reached and missed so far.
#[derive(Default)]
pub struct Table {
    reached: usize,
    missed: Vec<String>,
}

/// A row: the measurement, our time and the peer's.
pub struct Row<'a> {
    /// The name of the measurement, with its size.
    pub name: &'a str,
    /// Our rate, such as `41.2 TFLOP/s`, or the variant; empty if only the time is of interest.
    pub rate: String,
    /// Our seconds.
    pub ours: f64,
    /// Name of the peer.
    pub peer: &'a str,
    /// The peer's seconds.
    pub theirs: f64,
    /// The goal.
    pub goal: Goal,
}

impl Table {
    /// Prints the heading.
    pub fn heading(&self) {
        println!(
            "\n{:<34} {:>11} {:>15}  {:<14} {:>11} {:>7}  goal",
            "what", "ours", "", "peer", "its time", "ratio"
        );
    }

    /// Prints a row.
    pub fn row(&mut self, row: &Row<'_>) {
        let ratio = row.theirs / row.ours;
        let line = format!(
            "{:<34} {:>11} {:>15}  {:<14} {:>11} {ratio:>7.3}",
            row.name,
            readable(row.ours),
            row.rate,
            row.peer,
            readable(row.theirs)
        );
        let verdict = match row.goal {
            Goal::None => String::new(),
            Goal::AtLeast(min) if ratio >= min => {
                self.reached += 1;
                format!("≥ {min} PASS")
            }
            Goal::AtLeast(min) => {
                self.missed.push(format!("{line}  ≥ {min}"));
                format!("≥ {min} FAIL")
            }
        };
        println!("{line}  {verdict}");
    }

    /// Prints the number of goals reached and missed; returns true if all are reached.
    pub fn finish(self) -> bool {
        println!("\n{} goals reached, {} missed", self.reached, self.missed.len());
        self.missed.iter().for_each(|row| println!("  {row}"));
        self.missed.is_empty()
    }
}

/// Formats seconds with a suitable unit.
fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.2} µs", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}
