//! The thread of a rank that watches the calls of its device: no other thread may be waiting for
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::fault::Fault;
use super::host_memory::HostMemory;
use super::nccl::{State, Unfinished};
use super::progress::{self, Progress};
use crate::lifecycle::fork_guard::Process;

/// Time between two looks at the device.
const POLL: Duration = Duration::from_millis(20);

/// Time between two reports of an unfinished call to the coordinator.
const REPORT: Duration = Duration::from_millis(200);

/// How long the coordinator may need to find out which rank is at fault for a failure of NCCL.
const DIAGNOSIS: Duration = Duration::from_secs(2);

/// How long a rank that leaves waits for the calls of its device.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// How long a rank that leaves waits until its communicator is destroyed, which may need others.
const DESTROY_LIMIT: Duration = Duration::from_secs(1);

/// The thread, and what ends it.
pub(super) struct Watchdog {
    thread: Option<JoinHandle<()>>,
    ends: Arc<AtomicBool>,
    state: Arc<State>,
    host: Arc<HostMemory>,
    process: Process,
}

impl Watchdog {
    /// Starts the thread of a rank. `limit` is the time limit of its calls.
    pub(super) fn start(
        state: &Arc<State>,
        host: &Arc<HostMemory>,
        limit: &Arc<Mutex<Duration>>,
    ) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            state: state.clone(),
            host: host.clone(),
            limit: limit.clone(),
            reported: (Instant::now(), 0),
            failed: None,
        };
        let has_to_end = ends.clone();
        let name = format!("scry-group-{}", state.seat.rank);
        let thread = thread::Builder::new().name(name).spawn(move || watch.run(&has_to_end));
        let thread = thread.inspect_err(|error| {
            log::error!(target: "scry::group", "calls of the device are not watched: {error}");
        });
        let (state, host, process) = (state.clone(), host.clone(), Process::current());
        Self { thread: thread.ok(), ends, state, host, process }
    }

    /// Waits until the device has finished its calls, or until the group has ended.
    fn drain(&self) {
        let start = Instant::now();
        while self.state.fault().is_none() {
            match self.state.poll() {
                Ok((_, None)) | Err(_) => return,
                Ok(_) if start.elapsed() < LEAVE_LIMIT => thread::sleep(Duration::from_millis(1)),
                Ok(_) => {
                    let fault = Fault::lost(self.state.seat.rank, "left before its calls ended");
                    return self.state.end(&fault);
                }
            }
        }
    }
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
            self.host.report(&Progress { submitted, oldest: None });
        }
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
    host: Arc<HostMemory>,
    limit: Arc<Mutex<Duration>>,
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
        let is_due = self.reported.0.elapsed() >= REPORT;
        if oldest.is_none() && submitted == self.reported.1 || !is_due {
            return Ok(());
        }
        if let Some(problem) = self.state.communicator.failure() {
            let rank = self.state.seat.rank;
            let noticed = *self.failed.get_or_insert_with(|| {
                log::error!(target: "scry::group", "rank {rank}: NCCL: {problem}");
                Instant::now()
            });
            if noticed.elapsed() >= DIAGNOSIS {
                self.state.end(&self.host.abort());
                return Ok(());
            }
        }
        if let Some(fault) = self.host.report(&self.progress(submitted, oldest.as_ref())) {
            self.reported = (Instant::now(), submitted);
            if let Some(fault) = fault {
                self.state.end(&fault);
            }
        }
        Ok(())
    }

    fn progress(&self, submitted: u64, oldest: Option<&Unfinished>) -> Progress {
        let limit = *self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = oldest.map(|it| progress::Unfinished {
            call: it.call,
            number: it.number,
            exceeded: (it.since.elapsed() >= limit).then_some(limit),
        });
        Progress { submitted, oldest }
    }
}
