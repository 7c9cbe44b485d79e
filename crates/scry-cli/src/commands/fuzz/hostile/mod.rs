//! `scry fuzz --hostile`: kernels that attack memory safety, in child processes.

pub mod child;
mod process;
mod trial;

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::{Value, json};

use self::process::{Batch, End, Event};
use super::{progress, table};
use crate::args::Fuzz;
use crate::report::{Failure, Report};
use scry_gpu::Device;

/// What happened on one device.
#[derive(Default)]
struct Row {
    device: String,
    kernels: u64,
    /// Kernels that may not end and did not, as is right.
    ended: u64,
    /// Kernels in which the device was given up in a loop that ends, but not in time.
    long: u64,
    problems: Vec<Problem>,
    /// Whether loops that may not end are left out.
    tame: bool,
}

struct Problem {
    /// A kind that the table has a column for.
    kind: String,
    seed: u64,
    what: String,
}

/// The kinds of problems, each with its column.
const KINDS: [(&str, &str); 6] = [
    ("damage", "canaries"),
    ("difference", "differences"),
    ("refused", "refused"),
    ("timeout", "timeouts"),
    ("hang", "hangs"),
    ("crash", "crashes"),
];

/// Runs the kernels on each device; not in order if one has a problem.
pub fn run(args: &Fuzz, quiet: bool) -> Result<Report, Failure> {
    let mut selectors = args.devices.clone();
    if selectors.is_empty() {
        let present = Device::list().into_iter();
        selectors = present.map(|info| format!("{}:{}", info.backend, info.index)).collect();
    }
    let bar = progress(args.seeds.saturating_mul(selectors.len() as u64), quiet);
    let mut rows = Vec::new();
    for selector in &selectors {
        rows.push(device_row(args, selector, &bar)?);
    }
    bar.finish_and_clear();
    Ok(report(args, &rows))
}

/// Runs the kernels on one device, batch after batch.
fn device_row(args: &Fuzz, selector: &str, bar: &ProgressBar) -> Result<Row, Failure> {
    let mut row = Row { device: selector.to_owned(), ..Row::default() };
    let end = args.first.saturating_add(args.seeds);
    let mut next = args.first;
    while next < end && row.problems.len() < args.stop.max(1) {
        let batch = Batch { first: next, count: args.batch.clamp(1, end - next), selector, args };
        let mut seen = |event: Event| row.note(event, bar);
        next = match batch.run(&mut seen)? {
            End::Done(next) => next,
            End::Died { seed, kind, what } => {
                let what = format!("{what}; {}", batch.narrowed(seed)?);
                batch.keep(seed, &what)?;
                row.note(Event::ended(seed, kind, what), bar);
                seed + 1
            }
        };
    }
    Ok(row)
}

impl Row {
    fn note(&mut self, event: Event, bar: &ProgressBar) {
        match event {
            Event::Device { name, tame } => {
                self.device = name;
                self.tame = tame;
            }
            Event::Begun(_) => {}
            Event::Ended { seed, kind, what } => {
                self.kernels += 1;
                bar.inc(1);
                match kind.as_str() {
                    "ok" => {}
                    "ended" => self.ended += 1,
                    "long" => self.long += 1,
                    _ => {
                        bar.println(format!("{}: seed {seed}: {kind}: {what}", self.device));
                        self.problems.push(Problem { kind, seed, what });
                    }
                }
            }
        }
    }

    fn count(&self, kind: &str) -> usize {
        self.problems.iter().filter(|problem| problem.kind == kind).count()
    }
}

fn report(args: &Fuzz, rows: &[Row]) -> Report {
    let mut text = String::new();
    for row in rows {
        for Problem { kind, seed, what } in &row.problems {
            text.push_str(&format!("{}: seed {seed}: {kind}: {what}\n", row.device));
        }
    }
    let mut lines =
        vec![vec!["device".to_owned(), "kernels".into(), "ended".into(), "long".into()]];
    lines[0].extend(KINDS.iter().map(|(_, title)| (*title).to_owned()));
    for row in rows {
        let mut line = vec![row.device.clone()];
        line.extend([row.kernels, row.ended, row.long].map(|count| count.to_string()));
        line.extend(KINDS.iter().map(|(kind, _)| row.count(kind).to_string()));
        lines.push(line);
    }
    text.push_str(&table(&lines, ""));
    for row in rows.iter().filter(|row| row.tame) {
        text.push_str(&format!(
            "{}: rule `endless`: loops that may not end are left out, because launches cannot be \
             cancelled there\n",
            row.device
        ));
    }
    for row in rows.iter().filter(|row| row.long > 0) {
        text.push_str(&format!(
            "{}: rule `long`: {} kernels outlasted the time limit in a loop that is proven to end, \
             which is not interrupted; each took a process\n",
            row.device, row.long
        ));
    }
    let ok = rows.iter().all(|row| row.problems.is_empty());
    if !ok {
        text.push_str(&format!("the kernels with problems are in {}\n", args.output.display()));
    }
    let json = json!({
        "first": args.first,
        "devices": rows.iter().map(row_json).collect::<Vec<Value>>(),
    });
    Report { text, json, ok }
}

fn row_json(row: &Row) -> Value {
    json!({
        "device": row.device,
        "kernels": row.kernels,
        "ended_by_the_time_limit": row.ended,
        "outlasted_the_time_limit": row.long,
        "endless_left_out": row.tame,
        "problems": row.problems.iter().map(problem_json).collect::<Vec<_>>(),
    })
}

fn problem_json(problem: &Problem) -> Value {
    json!({ "kind": problem.kind, "seed": problem.seed, "what": problem.what })
}

/// How long a kernel may keep its process busy.
fn patience(args: &Fuzz) -> Duration {
    Duration::from_secs(args.timeout.max(1))
}
