//! Child processes that run batches of hostile kernels, and what they say.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use serde_json::{Value, json};

use super::patience;
use crate::args::Fuzz;
use crate::report::Failure;

/// A line of a child.
pub(super) enum Event {
    /// The device, and whether loops that may not end are left out for it.
    Device {
        name: String,
        tame: bool,
    },
    Begun(u64),
    Ended {
        seed: u64,
        kind: String,
        what: String,
    },
}

impl Event {
    pub fn ended(seed: u64, kind: &str, what: impl Into<String>) -> Self {
        Self::Ended { seed, kind: kind.to_owned(), what: what.into() }
    }

    /// As a line.
    pub fn line(&self) -> String {
        let value = match self {
            Self::Device { name, tame } => json!({ "device": name, "tame": tame }),
            Self::Begun(seed) => json!({ "begun": seed }),
            Self::Ended { seed, kind, what } => json!({ "seed": seed, "kind": kind, "what": what }),
        };
        value.to_string()
    }

    /// Nothing for a line of something else.
    fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        if let Some(seed) = value["begun"].as_u64() {
            return Some(Self::Begun(seed));
        }
        if let Some(name) = text("device") {
            return Some(Self::Device { name, tame: value["tame"].as_bool().unwrap_or(false) });
        }
        let (kind, what) = (text("kind")?, text("what").unwrap_or_default());
        Some(Self::Ended { seed: value["seed"].as_u64()?, kind, what })
    }
}

/// How a child came to its end.
pub(super) enum End {
    /// By itself, before the kernel of this seed: the next batch's, or one that needs another
    /// process.
    Done(u64),
    /// In the middle of a kernel.
    Died { seed: u64, kind: &'static str, what: String },
}

/// Kernels that one child runs.
pub(super) struct Batch<'a> {
    pub first: u64,
    pub count: u64,
    pub selector: &'a str,
    pub args: &'a Fuzz,
}

impl Batch<'_> {
    /// Runs the kernels in a child, for as long as each ends in time.
    pub fn run(&self, seen: &mut dyn FnMut(Event)) -> Result<End, Failure> {
        let mut child = self.spawn(self.first, self.count, "run")?;
        let events = events(&mut child);
        let errors = errors(&mut child);
        let (mut running, mut next) = (None, self.first + self.count);
        loop {
            match events.recv_timeout(patience(self.args)) {
                Ok(Event::Begun(seed)) => running = Some(seed),
                Ok(event) => {
                    if let Event::Ended { seed, .. } = event {
                        (running, next) = (None, seed + 1);
                    }
                    seen(event);
                }
                Err(RecvTimeoutError::Timeout) => return self.hung(&mut child, running),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait().map_err(|error| lost(&error))?;
        let said = errors.join().unwrap_or_default();
        match running {
            None if status.success() => Ok(End::Done(next)),
            None => Err(Failure::Work(format!("a child process ended with {status}: {said}"))),
            Some(seed) => {
                let what = format!("the process ended with {}{}", status_text(status), last(&said));
                Ok(End::Died { seed, kind: "crash", what })
            }
        }
    }

    fn hung(&self, child: &mut Child, running: Option<u64>) -> Result<End, Failure> {
        // It may have ended by now, which is as good.
        let _ = child.kill();
        child.wait().map_err(|error| lost(&error))?;
        let seconds = patience(self.args).as_secs();
        match running {
            Some(seed) => {
                let what = format!("the kernel did not end within {seconds} s");
                Ok(End::Died { seed, kind: "hang", what })
            }
            None => Err(Failure::Work(format!("a child process did nothing for {seconds} s"))),
        }
    }

    /// Which seeds a problem needs: the kernel's alone, or some before it as well.
    pub fn narrowed(&self, seed: u64) -> Result<String, Failure> {
        let mut back = 0;
        loop {
            let first = seed.saturating_sub(back).max(self.first);
            let fewer = Batch { first, count: seed - first + 1, ..*self };
            if let End::Died { .. } = fewer.run(&mut |_| {})? {
                return Ok(match seed - first {
                    0 => "it does so alone".to_owned(),
                    _ => format!("it takes the seeds {first} to {seed}"),
                });
            }
            if first == self.first {
                return Ok(format!("it did not happen again with the seeds {first} to {seed}"));
            }
            back = (2 * back).max(1);
        }
    }

    /// Writes the kernel of a seed and its data, without running it.
    pub fn keep(&self, seed: u64, what: &str) -> Result<(), Failure> {
        let mut child = self.spawn(seed, 1, &format!("keep {what}"))?;
        child.wait().map(|_| ()).map_err(|error| lost(&error))
    }

    fn spawn(&self, first: u64, count: u64, mode: &str) -> Result<Child, Failure> {
        let this = std::env::current_exe().map_err(|error| lost(&error))?;
        let (first, count) = (first.to_string(), count.to_string());
        let mut command = Command::new(this);
        command.args(["fuzz", "--hostile", "--first", &first, "--seeds", &count]);
        command.args(["--device", self.selector, "--child", mode, "--output"]);
        command.arg(&self.args.output);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| lost(&error))
    }
}

fn lost(error: &std::io::Error) -> Failure {
    Failure::Work(format!("a child process cannot be run: {error}"))
}

fn events(child: &mut Child) -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for event in lines.filter_map(|line| Event::read(&line)) {
                // The receiver is gone once the child was given up.
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

fn errors(child: &mut Child) -> thread::JoinHandle<String> {
    let errors = child.stderr.take();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            // What was read so far is of use even if the rest cannot be.
            let _ = errors.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).trim().to_owned()
    })
}

/// The last line of what a process said.
fn last(said: &str) -> String {
    said.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
}

fn status_text(status: ExitStatus) -> String {
    status.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let events = [
            Event::Device { name: "cpu:0".into(), tame: true },
            Event::Begun(7),
            Event::ended(7, "crash", "a \"quote\"\nand a line"),
        ];
        for event in events {
            let line = event.line();
            assert_eq!(line.lines().count(), 1);
            assert_eq!(Event::read(&line).map(|event| event.line()), Some(line));
        }
        assert!(Event::read("MESA: warning").is_none());
    }
}
