//! Child processes that run batches of hostile kernels, and their messages.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::progress::Progress;
use super::Problem;
use crate::args::Fuzz;
use crate::report::{Failure, printable};

/// A message of a child: one line.
pub(super) enum Event {
    /// The device, and whether loops that may not terminate are omitted for it.
    Device { name: String, omits_endless: bool },
    /// The kernel of this seed is about to run.
    Started(u64),
    /// A problem, before its kernel is minimised.
    Found(Problem),
    /// Progress of the minimiser: the number of candidates tried so far.
    Minimising { seed: u64, tried: u64 },
    /// A kernel has finished. The kind is that of its problem, or else `ok` or `cancelled`, as
    /// expected.
    Finished(Problem),
}

impl Event {
    pub fn finished(seed: u64, kind: &str, message: impl Into<String>) -> Self {
        Self::Finished(Problem { kind: kind.to_owned(), seed, message: message.into() })
    }

    pub fn found(seed: u64, kind: &str, message: impl Into<String>) -> Self {
        Self::Found(Problem { kind: kind.to_owned(), seed, message: message.into() })
    }

    /// Formats the message as a line.
    pub fn to_line(&self) -> String {
        let problem = |problem: &Problem, found: bool| {
            let Problem { kind, seed, message } = problem;
            json!({ "seed": seed, "kind": kind, "message": message, "found": found })
        };
        let value = match self {
            Self::Device { name, omits_endless } => {
                json!({ "device": name, "omits_endless": omits_endless })
            }
            Self::Started(seed) => json!({ "started": seed }),
            Self::Minimising { seed, tried } => json!({ "minimising": seed, "tried": tried }),
            Self::Found(it) => problem(it, true),
            Self::Finished(it) => problem(it, false),
        };
        value.to_string()
    }

    /// Parses a line; `None` for other output.
    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        if let Some(seed) = value["started"].as_u64() {
            return Some(Self::Started(seed));
        }
        if let Some(seed) = value["minimising"].as_u64() {
            return Some(Self::Minimising { seed, tried: value["tried"].as_u64()? });
        }
        if let Some(name) = text("device") {
            let omits_endless = value["omits_endless"].as_bool().unwrap_or(false);
            return Some(Self::Device { name, omits_endless });
        }
        let (kind, message) = (text("kind")?, text("message").unwrap_or_default());
        let problem = Problem { kind, seed: value["seed"].as_u64()?, message: printable(&message) };
        Some(if value["found"] == true { Self::Found(problem) } else { Self::Finished(problem) })
    }
}

/// How a child ended.
pub(super) enum End {
    /// It exited after this number of kernels: all of the batch, or those up to one that needs
    /// another process.
    Done(u64),
    /// It crashed or hung in a kernel, or after its last one.
    Died(Death),
}

/// A crash or hang of a child.
pub(super) struct Death {
    /// What happened, with the seed of the running kernel, or of the last one that finished.
    pub problem: Problem,
    /// False if the child has reported the end of that kernel.
    pub in_kernel: bool,
    /// True if the child has written the kernel to the folder.
    pub is_saved: bool,
}

/// The state of a child, according to its messages so far.
#[derive(Default)]
struct ChildState {
    /// The kernel that is running.
    running: Option<u64>,
    /// The last kernel that finished.
    finished: Option<u64>,
    /// The problem of the running kernel.
    found: Option<Problem>,
}

impl ChildState {
    fn update(&mut self, event: &Event) {
        match event {
            Event::Started(seed) => self.running = Some(*seed),
            Event::Found(problem) => self.found = Some(problem.clone()),
            Event::Finished(problem) => {
                *self = Self { finished: Some(problem.seed), ..Self::default() };
            }
            Event::Device { .. } | Event::Minimising { .. } => {}
        }
    }

    /// Describes the crash or hang of the child, caused by `how`; `None` if it has not started any
    /// kernel.
    fn death(&self, kind: &str, how: &str) -> Option<Death> {
        let problem = |seed, message| Problem { kind: kind.to_owned(), seed, message };
        let (problem, in_kernel, is_saved) = match (&self.found, self.running, self.finished) {
            (Some(found), ..) => {
                let message = format!("{}; while it was being minimised, {how}", found.message);
                (Problem { message, ..found.clone() }, true, true)
            }
            (None, Some(seed), _) => (problem(seed, how.to_owned()), true, false),
            (None, None, Some(seed)) => {
                (problem(seed, format!("after the kernel had finished, {how}")), false, false)
            }
            (None, None, None) => return None,
        };
        Some(Death { problem, in_kernel, is_saved })
    }
}

/// Kernels that one child runs.
pub(super) struct Batch<'a> {
    pub first: u64,
    /// At least one.
    pub count: u64,
    pub selector: &'a str,
    pub args: &'a Fuzz,
}

impl Batch<'_> {
    /// Runs the kernels in a child, which is killed if it sends no message for `--timeout`.
    pub fn run(&self, on_event: &mut dyn FnMut(Event)) -> Result<End, Failure> {
        let mut child = self.spawn(self.first, self.count, "run")?;
        let events = receive_events(&mut child);
        let errors = read_stderr(&mut child);
        let mut state = ChildState::default();
        loop {
            match events.recv_timeout(self.args.timeout) {
                Ok(event) => {
                    state.update(&event);
                    on_event(event);
                }
                Err(RecvTimeoutError::Timeout) => return self.kill_hung(&mut child, &state),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait().map_err(|error| spawn_failed(&error))?;
        self.end_of_exited(&state, status, &errors.join().unwrap_or_default())
    }

    /// Returns the end of a child that exited with `status`; `stderr` is its standard error.
    fn end_of_exited(
        &self,
        state: &ChildState,
        status: ExitStatus,
        stderr: &str,
    ) -> Result<End, Failure> {
        if status.success() && state.running.is_none() {
            let done = state.finished.map_or(self.count, |seed| seed - self.first + 1);
            return Ok(End::Done(done));
        }
        let how = format!("the process exited with {status}{}", last_line(stderr));
        let death = state.death("crash", &how);
        death.map(End::Died).ok_or_else(|| {
            Failure::Runtime(format!("a child process exited before its first kernel: {how}"))
        })
    }

    /// Kills a child that made no progress, and returns its end.
    fn kill_hung(&self, child: &mut Child, state: &ChildState) -> Result<End, Failure> {
        // It may have exited already.
        let _ = child.kill();
        child.wait().map_err(|error| spawn_failed(&error))?;
        let limit = humantime::format_duration(self.args.timeout);
        let death = state.death("hang", &format!("the process made no progress for {limit}"));
        death.map(End::Died).ok_or_else(|| {
            Failure::Runtime(format!(
                "a child process hung before its first kernel: no progress for {limit}"
            ))
        })
    }

    /// Describes which seeds up to `seed` reproduce a crash or hang. Starts with `seed` alone, and
    /// doubles the range until it is reproduced, or until the time limit.
    pub fn minimal_seed_range(&self, seed: u64, progress: &Progress) -> Result<String, Failure> {
        let start = Instant::now();
        let mut back = 0;
        loop {
            let first = seed.saturating_sub(back).max(self.first);
            let batch = Batch { first, count: seed - first + 1, ..*self };
            progress.activity(format!("seed {seed}: retrying with the seeds from {first}"));
            if let End::Died(_) = batch.run(&mut |_| {})? {
                return Ok(match seed - first {
                    0 => "it reproduces with this seed alone".to_owned(),
                    _ => format!("it reproduces with the seeds {first} to {seed}"),
                });
            }
            if first == self.first {
                return Ok(format!("it does not reproduce with the seeds {first} to {seed}"));
            }
            if start.elapsed() >= self.args.timeout {
                return Ok(format!(
                    "it did not reproduce within the time limit, with the seeds {first} to {seed}"
                ));
            }
            back = (2 * back).max(1);
        }
    }

    /// Writes the kernel of a seed and its data from a child, which does not run it.
    pub fn save_kernel(&self, seed: u64, message: &str) -> Result<(), Failure> {
        let mut child = self.spawn(seed, 1, &format!("keep {message}"))?;
        child.wait().map(|_| ()).map_err(|error| spawn_failed(&error))
    }

    fn spawn(&self, first: u64, count: u64, mode: &str) -> Result<Child, Failure> {
        let this = std::env::current_exe().map_err(|error| spawn_failed(&error))?;
        let (first, count) = (first.to_string(), count.to_string());
        let mut command = Command::new(this);
        command.args(["fuzz", "--hostile", "--first", &first, "--seeds", &count]);
        let timeout = format!("{}ms", self.args.timeout.as_millis());
        command.args(["--device", self.selector, "--timeout", &timeout]);
        command.args(["--child", &printable(mode), "--output"]);
        command.arg(&self.args.output);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| spawn_failed(&error))
    }
}

fn spawn_failed(error: &std::io::Error) -> Failure {
    Failure::Runtime(format!("cannot run a child process: {error}"))
}

/// Starts a thread that parses the messages of a child.
fn receive_events(child: &mut Child) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for event in lines.filter_map(|line| Event::parse(&line)) {
                // The receiver is dropped once the child is killed.
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// Starts a thread that reads the standard error of a child.
fn read_stderr(child: &mut Child) -> thread::JoinHandle<String> {
    let errors = child.stderr.take();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // A partial text is still useful.
            let _ = errors.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    })
}

/// Formats the last line of a process's standard error; empty if there is none.
fn last_line(stderr: &str) -> String {
    stderr.lines().last().map(|line| format!(": {}", printable(line))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_round_trip() {
        let events = [
            Event::Device { name: "cpu:0".into(), omits_endless: true },
            Event::Started(u64::MAX),
            Event::found(7, "corruption", "a \"quote\"\nand a line"),
            Event::Minimising { seed: 7, tried: 9 },
            Event::finished(7, "crash", "a \"quote\"\nand a line"),
        ];
        for event in events {
            let line = event.to_line();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Event::parse(&line).map(|event| event.to_line()), Some(line));
        }
        assert!(Event::parse("MESA: warning").is_none());
    }

    #[test]
    fn child_output_is_escaped() {
        let event = Event::parse(&Event::finished(1, "error", "a driver's \0").to_line());
        let Some(Event::Finished(problem)) = event else { panic!("it is one") };
        assert_eq!(problem.message, "a driver's \\u{0}");
        assert_eq!(last_line("first\nlast \0"), ": last \\u{0}");
    }

    /// Returns the death of a child that reported `events` and was killed by a signal.
    #[cfg(unix)]
    fn death_by_signal(events: &[Event]) -> Result<Death, Failure> {
        use clap::Parser;
        use std::os::unix::process::ExitStatusExt;
        let cli = crate::args::Cli::parse_from(["scry", "fuzz", "--hostile"]);
        let crate::args::Command::Fuzz(args) = cli.command else { panic!("it is") };
        let mut state = ChildState::default();
        events.iter().for_each(|event| state.update(event));
        let batch = Batch { first: 5, count: 9, selector: "cpu:0", args: &args };
        match batch.end_of_exited(&state, ExitStatus::from_raw(11), "a line\nSegmentation fault")? {
            End::Died(death) => Ok(death),
            End::Done(done) => panic!("done after {done}"),
        }
    }

    #[cfg(unix)]
    #[test]
    fn crash_after_last_kernel_counts() {
        let death = death_by_signal(&[Event::Started(5), Event::finished(5, "ok", "")]).unwrap();
        assert_eq!((death.problem.kind.as_str(), death.problem.seed), ("crash", 5));
        assert!(!death.in_kernel && !death.is_saved);
        let message = &death.problem.message;
        assert!(
            message.starts_with("after the kernel had finished, the process exited with signal")
        );
        assert!(message.ends_with(": Segmentation fault"), "{message}");
        let Err(Failure::Runtime(text)) = death_by_signal(&[]) else { panic!("nothing was run") };
        assert!(text.contains("exited before its first kernel"), "{text}");
    }

    #[cfg(unix)]
    #[test]
    fn crash_while_minimising_keeps_problem() {
        let events = [Event::Started(6), Event::found(6, "corruption", "4 of the bytes after `x`")];
        let death = death_by_signal(&events).unwrap();
        assert_eq!((death.problem.kind.as_str(), death.problem.seed), ("corruption", 6));
        assert!(death.in_kernel && death.is_saved);
        assert!(death.problem.message.starts_with("4 of the bytes after `x`; while it was being"));
    }
}
