//! `scry fuzz --hostile`: kernels that attack memory safety, in child processes.

pub mod child;
mod process;
mod trial;

use serde_json::{Value, json};

use self::process::{Batch, Death, End, Event};
use super::progress::{Progress, minimising_text};
use super::table;
use crate::args::Fuzz;
use crate::report::{Failure, Report};
use scry_gpu::Device;

/// The results of one device: a row of the table.
#[derive(Default)]
struct Row {
    device: String,
    kernels: u64,
    /// Kernels that may loop forever and were cancelled, as expected.
    cancelled: u64,
    problems: Vec<Problem>,
    /// Whether loops that may not terminate are omitted.
    omits_endless: bool,
}

/// A problem of a kernel.
#[derive(Clone)]
struct Problem {
    /// The kind, which is a column of the table.
    kind: String,
    seed: u64,
    message: String,
}

/// The kinds of problems, each with its column.
const KINDS: [(&str, &str); 7] = [
    // A guard byte beside a buffer was overwritten.
    ("corruption", "corruptions"),
    // A well-defined result differs from the reference's.
    ("difference", "differences"),
    // The device returned an error.
    ("error", "errors"),
    // The time limit expired, although all loops terminate, or the device stopped working after it.
    ("timeout", "timeouts"),
    // The device was lost in a kernel that may not terminate and has loops that do not poll for
    // cancellation.
    ("unpolled", "unpolled"),
    // The child process made no progress.
    ("hang", "hangs"),
    // The child process died, or running the kernel panicked.
    ("crash", "crashes"),
];

/// Runs the kernels on each device. The report is not `ok` if a kernel has a problem.
pub fn run(args: &Fuzz, quiet: bool) -> Result<Report, Failure> {
    let mut selectors = args.devices.clone();
    if selectors.is_empty() {
        let present = Device::list().into_iter();
        selectors = present.map(|info| format!("{}:{}", info.backend, info.index)).collect();
    }
    let progress = Progress::new(args.seeds.saturating_mul(selectors.len() as u64), quiet);
    let mut rows: Vec<Row> = Vec::new();
    let mut stopped = None;
    for selector in &selectors {
        let mut row = Row { device: selector.to_owned(), ..Row::default() };
        let outcome = row.run(args, selector, &progress);
        rows.push(row);
        match outcome {
            Ok(()) => {}
            // Report the results so far.
            Err(Failure::Runtime(text)) if rows.iter().any(|row| row.kernels > 0) => {
                stopped = Some(format!("{selector}: {text}"));
                break;
            }
            Err(failure) => return Err(failure),
        }
    }
    progress.finish();
    Ok(report(args, &rows, stopped))
}

impl Row {
    /// Runs the kernels on one device, batch after batch.
    fn run(&mut self, args: &Fuzz, selector: &str, progress: &Progress) -> Result<(), Failure> {
        let mut done = 0;
        while done < args.seeds && (self.problems.len() as u64) < args.stop {
            let count = args.batch.min(args.seeds - done);
            let batch = Batch { first: args.first + done, count, selector, args };
            done += match batch.run(&mut |event| self.record(event, progress))? {
                End::Done(kernels) => kernels,
                End::Died(death) => {
                    let kernels = death.problem.seed - batch.first + 1;
                    self.record_death(&batch, death, progress)?;
                    kernels
                }
            };
        }
        Ok(())
    }

    fn record(&mut self, event: Event, progress: &Progress) {
        match event {
            Event::Device { name, omits_endless } => {
                self.device = name;
                self.omits_endless = omits_endless;
            }
            Event::Started(_) => {}
            Event::Found(problem) => progress.activity(minimising_text(problem.seed, 0)),
            Event::Minimising { seed, tried } => progress.activity(minimising_text(seed, tried)),
            Event::Finished(problem) => {
                self.kernels += 1;
                progress.activity(String::new());
                progress.advance();
                match problem.kind.as_str() {
                    "ok" => {}
                    "cancelled" => self.cancelled += 1,
                    _ => self.add(problem, progress),
                }
            }
        }
    }

    /// Records the crash or hang of a child, and the seeds that reproduce it.
    fn record_death(
        &mut self,
        batch: &Batch<'_>,
        death: Death,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let Death { mut problem, in_kernel, is_saved } = death;
        let seed = problem.seed;
        if !is_saved {
            problem.message =
                format!("{}; {}", problem.message, batch.minimal_seed_range(seed, progress)?);
            batch.save_kernel(seed, &format!("{}: {}", problem.kind, problem.message))?;
        }
        if in_kernel {
            self.kernels += 1;
            progress.advance();
        }
        progress.activity(String::new());
        self.add(problem, progress);
        Ok(())
    }

    fn add(&mut self, problem: Problem, progress: &Progress) {
        let Problem { kind, seed, message } = &problem;
        progress.line(&format!("{}: seed {seed}: {kind}: {message}", self.device));
        self.problems.push(problem);
    }

    fn count(&self, kind: &str) -> usize {
        self.problems.iter().filter(|problem| problem.kind == kind).count()
    }
}

fn report(args: &Fuzz, rows: &[Row], stopped: Option<String>) -> Report {
    let mut text = String::new();
    for row in rows {
        for Problem { kind, seed, message } in &row.problems {
            text.push_str(&format!("{}: seed {seed}: {kind}: {message}\n", row.device));
        }
    }
    let mut lines = vec![vec!["device".to_owned(), "kernels".into(), "cancelled".into()]];
    lines[0].extend(KINDS.iter().map(|(_, title)| (*title).to_owned()));
    for row in rows {
        let mut line = vec![row.device.clone()];
        line.extend([row.kernels, row.cancelled].map(|count| count.to_string()));
        line.extend(KINDS.iter().map(|(kind, _)| row.count(kind).to_string()));
        lines.push(line);
    }
    text.push_str(&table(&lines, ""));
    for row in rows.iter().filter(|row| row.omits_endless) {
        text.push_str(&format!(
            "{}: rule `endless`: loops that may not terminate are omitted, because launches cannot \
             be cancelled\n",
            row.device
        ));
    }
    let found = rows.iter().any(|row| !row.problems.is_empty());
    if found {
        text.push_str(&format!("the kernels with problems are in {}\n", args.output.display()));
    }
    if let Some(why) = &stopped {
        text.push_str(&format!("not all kernels were run: {why}\n"));
    }
    let json = json!({
        "first": args.first,
        "devices": rows.iter().map(row_json).collect::<Vec<Value>>(),
        "stopped": stopped,
    });
    Report { text, json, ok: !found && stopped.is_none() }
}

fn row_json(row: &Row) -> Value {
    json!({
        "device": row.device,
        "kernels": row.kernels,
        "cancelled": row.cancelled,
        "omits_endless_loops": row.omits_endless,
        "problems": row.problems.iter().map(problem_json).collect::<Vec<_>>(),
    })
}

fn problem_json(problem: &Problem) -> Value {
    json!({ "kind": problem.kind, "seed": problem.seed, "message": problem.message })
}
