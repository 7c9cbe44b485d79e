//! The thread of a rank that watches the calls of its device: no other thread may be waiting for
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::nccl::{Oldest, State};
use super::progress::{self, Progress};
use crate::lifecycle::fork_guard::Process;

/// Time between two looks at the device.
const POLL: Duration = Duration::from_millis(20);

/// Time between two reports of an unfinished call to the coordinator.
const REPORT: Duration = Duration::from_millis(200);

/// How long the coordinator may need to find out which rank is at fault for a failure of NCCL.
const DIAGNOSIS: Duration = Duration::from_secs(1);

/// How long a rank that leaves waits until its communicator is destroyed, which may need others.
const DESTROY_LIMIT: Duration = Duration::from_secs(1);

/// The thread, and what ends it.
pub(super) struct Watchdog {
    thread: Option<JoinHandle<()>>,
    ends: Arc<AtomicBool>,
    state: Arc<State>,
    process: Process,
}

impl Watchdog {
    /// Starts the thread of a rank.
    pub(super) fn start(state: &Arc<State>) -> Result<Self, Fault> {
        let ends = Arc::new(AtomicBool::new(false));
        let reported = (Instant::now(), 0);
        let watch = Watch { state: state.clone(), reported, failed: None };
        let has_to_end = ends.clone();
        let rank = state.seat.rank;
        let name = format!("scry-group-{rank}");
        let thread = thread::Builder::new().name(name).spawn(move || watch.run(&has_to_end));
        let failed = |error| Fault::lost(rank, &format!("could not start a thread: {error}"));
        let thread = Some(thread.map_err(failed)?);
        Ok(Self { thread, ends, state: state.clone(), process: Process::current() })
    }

    /// Waits until the device has finished its calls, or until the group has ended: at the latest
    /// when a call has exceeded the time limit.
    fn drain(&self) {
        while self.state.fault().is_none() {
            let Ok((_, Some(oldest))) = self.state.poll() else { return };
            if oldest.since.elapsed() >= limit(&self.state).saturating_add(GRACE) {
                let fault = Fault::lost(self.state.seat.rank, "left before its calls ended");
                return self.state.end(&fault);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How much longer than the time limit a rank that leaves waits for the coordinator to find out
/// which rank is at fault.
const GRACE: Duration = Duration::from_secs(2);

/// Returns the time limit of calls.
fn limit(state: &State) -> Duration {
    *state.limit.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.process.has_forked() {
            // The thread does not exist in this process.
            std::mem::forget(self.thread.take());
            return;
        }
        self.drain();
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic was printed by its thread.
            let _ = thread.join();
        }
        if let Ok((submitted, None)) = self.state.poll() {
            let left = Progress { submitted, oldest: None };
            self.state.host().and_then(|host| host.report(&left, || self.state.take_messages()));
        }
        self.state.leave();
        let communicator = self.state.communicator.clone();
        let (sender, receiver) = std::sync::mpsc::channel();
        let destroy = move || {
            communicator.destroy();
            // The receiver is gone after the time limit.
            let _ = sender.send(());
        };
        let spawned = thread::Builder::new().name("scry-nccl-destroy".to_owned()).spawn(destroy);
        if spawned.is_ok() {
            let _ = receiver.recv_timeout(DESTROY_LIMIT);
        }
    }
}

/// What the thread uses.
struct Watch {
    state: Arc<State>,
    /// When the rank last reported, and the number of collectives that it had submitted.
    reported: (Instant, u64),
    /// When NCCL first reported a failure.
    failed: Option<Instant>,
}

impl Watch {
    fn run(mut self, has_to_end: &AtomicBool) {
        while !has_to_end.load(Ordering::Acquire) {
            if self.state.fault().is_none() && self.look().is_err() {
                // The device is lost, or the process is exiting: waits return that error.
                return;
            }
            thread::park_timeout(POLL);
        }
    }

    /// Looks once; an error if the device can no longer be asked.
    fn look(&mut self) -> crate::api::error::Result<()> {
        let (submitted, oldest) = self.state.poll()?;
        if self.reported.0.elapsed() < REPORT {
            return Ok(());
        }
        let Some(host) = self.state.host() else { return Ok(()) };
        let failure = self.state.communicator.failure();
        if let Some(problem) = &failure {
            let rank = self.state.seat.rank;
            let noticed = *self.failed.get_or_insert_with(|| {
                log::error!(target: "scry::group", "rank {rank}: NCCL: {problem}");
                Instant::now()
            });
            if noticed.elapsed() >= DIAGNOSIS {
                self.state.end(&host.abort());
                return Ok(());
            }
        }
        // A message that has arrived is reported too: its receiver may be late.
        let is_known = submitted == self.reported.1 && !self.state.has_messages();
        if failure.is_none() && oldest.is_none() && is_known {
            return Ok(());
        }
        let progress = self.progress(submitted, oldest);
        if let Some(fault) = host.report(&progress, || self.state.take_messages()) {
            self.reported = (Instant::now(), submitted);
            if let Some(fault) = fault {
                self.state.end(&fault);
            }
        }
        Ok(())
    }

    fn progress(&self, submitted: u64, oldest: Option<Oldest>) -> Progress {
        let limit = limit(&self.state);
        let oldest = oldest.map(|it| progress::Unfinished {
            call: it.call,
            number: it.number,
            message: it.message,
            exceeded: (it.since.elapsed() >= limit).then_some(limit),
        });
        Progress { submitted, oldest }
    }
}
