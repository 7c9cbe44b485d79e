//! The processes of the ranks.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::environment::Environment;
use super::output::{Target, forward};
use crate::args::Launch;
use crate::report::Failure;

/// How long the others may run after a rank has failed, so that they can report what they noticed.
const GRACE: Duration = Duration::from_secs(3);

/// Pause between two looks at the processes.
const POLL: Duration = Duration::from_millis(10);

/// How long output is waited for after the end of a rank, whose own children may still hold it.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The running ranks.
pub struct Ranks {
    children: Vec<Child>,
    /// The threads that print their output.
    output: Vec<JoinHandle<()>>,
    /// Whether standard output was closed by its reader.
    is_closed: Arc<AtomicBool>,
}

/// How a rank ended.
pub struct Exit {
    pub rank: u32,
    status: ExitStatus,
    /// Whether it was ended because another rank failed.
    pub was_ended: bool,
}

impl Exit {
    pub fn is_success(&self) -> bool {
        self.status.success()
    }

    /// Returns how it ended, as the predicate of a sentence.
    pub fn text(&self) -> String {
        match self.status.code() {
            Some(code) => format!("ended with exit code {code}"),
            // `signal: 9 (SIGKILL)`.
            None => format!("was ended by a {}", self.status),
        }
    }
}

impl Ranks {
    /// Starts all ranks. With `json`, standard output is left to the document.
    pub fn start(args: &Launch, environment: &Environment, json: bool) -> Result<Self, Failure> {
        let is_closed = Arc::new(AtomicBool::new(false));
        let mut ranks = Self { children: Vec::new(), output: Vec::new(), is_closed };
        let target = if json { Target::Stderr } else { Target::Stdout };
        for rank in 0..args.ranks {
            let mut command = Command::new(&args.program[0]);
            command.args(&args.program[1..]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            environment.set(rank, &mut command);
            // If it fails, dropping `ranks` ends the others.
            let mut child = command.spawn().map_err(|error| {
                let program = args.program[0].display();
                Failure::Runtime(format!(
                    "{program}: rank {rank} cannot be started: {error}; help: give the path of an \
                     executable file after --"
                ))
            })?;
            let streams = (child.stdout.take(), child.stderr.take());
            ranks.children.push(child);
            let is_closed = &ranks.is_closed;
            ranks.output.extend(streams.0.map(|it| forward(it, rank, target, is_closed)));
            ranks.output.extend(streams.1.map(|it| forward(it, rank, Target::Stderr, is_closed)));
        }
        Ok(ranks)
    }

    /// Waits for the end of all ranks, and ends the others if one fails.
    pub fn wait(mut self) -> Result<Vec<Exit>, Failure> {
        let mut exits: Vec<Option<Exit>> = self.children.iter().map(|_| None).collect();
        let (mut failed_at, mut is_ending, mut ended) = (None, false, 0);
        while ended < exits.len() {
            for (rank, child) in (0..).zip(&mut self.children) {
                let slot = &mut exits[rank as usize];
                if slot.is_some() {
                    continue;
                }
                let status = child
                    .try_wait()
                    .map_err(|error| Failure::Runtime(format!("rank {rank}: {error}")))?;
                let Some(status) = status else { continue };
                if !status.success() && failed_at.is_none() {
                    failed_at = Some(Instant::now());
                }
                *slot = Some(Exit { rank, status, was_ended: is_ending && !status.success() });
                ended += 1;
            }
            let is_due = failed_at.is_some_and(|at: Instant| at.elapsed() >= GRACE);
            if !is_ending && (is_due || self.is_closed.load(Ordering::Relaxed)) {
                self.end();
                is_ending = true;
            }
            thread::sleep(POLL);
        }
        self.finish_output();
        match self.is_closed.load(Ordering::Relaxed) {
            true => Err(Failure::BrokenPipe),
            false => Ok(exits.into_iter().flatten().collect()),
        }
    }

    /// Ends all ranks that are still running.
    fn end(&mut self) {
        for child in &mut self.children {
            // It fails if the rank has ended already.
            let _ = child.kill();
        }
    }

    /// Waits for the last output of the ranks.
    fn finish_output(&self) {
        let start = Instant::now();
        let is_open = || self.output.iter().any(|thread| !thread.is_finished());
        while is_open() && start.elapsed() < LAST_OUTPUT {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.end();
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}
