//! The ranks of a launch: started, waited for, and ended when one fails.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::environment::Environment;
use super::interrupt::{self, Interrupts};
use super::output::{Output, Target};
use super::process::{Process, Signal};
use crate::args::Launch;
use crate::report::Failure;

/// Polling interval of the processes.
const POLL: Duration = Duration::from_millis(10);

/// Time from SIGTERM to SIGKILL.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);

/// The running ranks.
pub struct Ranks {
    processes: Vec<Process>,
    output: Output,
    interrupts: Interrupts,
    /// How long the others may run after a rank has failed, so that they can report what they
    /// noticed.
    grace: Duration,
}

/// How a rank ended.
pub struct Exit {
    pub rank: u32,
    status: ExitStatus,
    /// Whether it failed after it was asked to end, because another rank had failed.
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

/// Returns the failure of a wait for a process.
fn not_waited(rank: usize, error: &std::io::Error) -> Failure {
    Failure::Runtime(format!("cannot wait for rank {rank}: {error}"))
}

/// The state of the ranks: running, or in which phase of their shutdown.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Running,
    /// One has failed; the others may run until the grace period ends.
    Failed(Instant),
    /// All were sent SIGTERM, or the signal that this process received.
    Terminating(Instant),
    Killed,
}

impl Ranks {
    /// Starts all ranks. With `json`, standard output is left to the document.
    pub fn start(args: &Launch, environment: &Environment, json: bool) -> Result<Self, Failure> {
        let (interrupts, grace) = (Interrupts::handle()?, args.grace);
        let mut ranks =
            Self { processes: Vec::new(), output: Output::default(), interrupts, grace };
        let target = if json { Target::Stderr } else { Target::Stdout };
        for rank in 0..args.ranks {
            let mut command = Command::new(&args.program[0]);
            command.args(&args.program[1..]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            environment.set(rank, &mut command);
            // If it fails, dropping `ranks` ends the others.
            let mut process = Process::start(&mut command).map_err(|error| {
                let program = args.program[0].display();
                Failure::Runtime(format!(
                    "{program}: rank {rank} cannot be started: {error}; help: give the path of an \
                     executable file after --"
                ))
            })?;
            let child = process.child();
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            ranks.processes.push(process);
            if let Some(stdout) = stdout {
                ranks.output.forward(stdout, rank, target);
            }
            if let Some(stderr) = stderr {
                ranks.output.forward(stderr, rank, Target::Stderr);
            }
        }
        Ok(ranks)
    }

    /// Waits for the end of all ranks, and ends the others if one fails.
    pub fn wait(mut self) -> Result<Vec<Exit>, Failure> {
        let (mut phase, mut signal) = (Phase::Running, None);
        let mut was_ended: Vec<Option<bool>> = vec![None; self.processes.len()];
        while was_ended.contains(&None) {
            for (rank, slot) in was_ended.iter_mut().enumerate().filter(|(_, it)| it.is_none()) {
                let success = self.processes[rank].success();
                let success = success.map_err(|error| not_waited(rank, &error))?;
                let Some(success) = success else { continue };
                *slot = Some(matches!(phase, Phase::Terminating(_) | Phase::Killed) && !success);
                if !success && phase == Phase::Running {
                    phase = Phase::Failed(Instant::now());
                }
            }
            let interrupt = self.interrupts.next();
            signal = signal.or(interrupt);
            phase = self.proceed(phase, interrupt);
            thread::sleep(POLL);
        }
        if phase != Phase::Running {
            // What the ranks started and left behind.
            self.send(Signal::Kill);
        }
        let printed = self.output.finish(|| {
            signal = signal.or_else(|| self.interrupts.next());
            signal.is_some()
        });
        if let Some(signal) = signal {
            return Err(interrupt::end_by(signal));
        }
        printed?;
        let mut exits = Vec::with_capacity(was_ended.len());
        for ((rank, process), was_ended) in (0..).zip(&mut self.processes).zip(was_ended) {
            let status = process.child().wait();
            let status = status.map_err(|error| not_waited(rank as usize, &error))?;
            exits.push(Exit { rank, status, was_ended: was_ended == Some(true) });
        }
        Ok(exits)
    }

    /// Asks the ranks to end, or kills them, if it is time. A signal to this process is passed on;
    /// a second one kills.
    fn proceed(&mut self, phase: Phase, interrupt: Option<i32>) -> Phase {
        let signal = match (phase, interrupt) {
            (Phase::Running | Phase::Failed(_), Some(signal)) => Signal::Ask(signal),
            (Phase::Terminating(_), Some(_)) => Signal::Kill,
            (Phase::Terminating(at), _) if at.elapsed() >= TERMINATE_TIMEOUT => Signal::Kill,
            (Phase::Running, None) if self.output.has_failed() => Signal::TERMINATE,
            (Phase::Failed(at), _) if at.elapsed() >= self.grace || self.output.has_failed() => {
                Signal::TERMINATE
            }
            _ => return phase,
        };
        self.send(signal);
        match signal {
            Signal::Ask(_) => Phase::Terminating(Instant::now()),
            Signal::Kill => Phase::Killed,
        }
    }

    /// Sends a signal to all ranks and what they started.
    fn send(&mut self, signal: Signal) {
        for process in &mut self.processes {
            // It fails if all have ended already.
            let _ = process.send(signal);
        }
    }
}
