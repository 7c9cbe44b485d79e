//! Failed launches: their submissions, and the waits that return their errors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::api::error::{GpuError, KernelError, Result};
use crate::core::command::Command;
use crate::core::command_list::{CommandList, Replay};
use crate::core::driver::FailureReport;
use crate::core::handles::{MemoryId, MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::report::{REPORT_BYTES, REPORTS_PER_BLOCK, ReportingLaunch};
use crate::core::submission_queue::SubmissionQueue;

/// Maximum number of failed submissions that are remembered.
const MAX_REMEMBERED: usize = 256;

/// Failure reports in transfer to the host.
pub(crate) struct ReportReadback {
    /// The launches with a report, and their number among all launches, from 1.
    launches: Vec<(ReportingLaunch, u64)>,
    /// Number of launches of the submission, including those without a report.
    total: u64,
    /// Bytes from one report to the next.
    stride: u64,
    copies: Vec<Command>,
    /// `Readback` memory, one per block of reports.
    readbacks: Vec<Arc<Memory>>,
    /// The thread that submitted.
    thread: ThreadId,
    /// The allocations that the submission writes.
    written: Vec<MemoryId>,
}

impl ReportReadback {
    /// Prepares the readback of a list's reports, if it has any.
    pub(crate) fn for_list(queue: &SubmissionQueue, list: &CommandList) -> Result<Option<Self>> {
        let reports = &list.reports;
        if reports.launches.is_empty() {
            return Ok(None);
        }
        let (mut copies, mut readbacks) = (Vec::new(), Vec::new());
        for block in reports.blocks.iter().take(reports.launches.len().div_ceil(REPORTS_PER_BLOCK))
        {
            let src = block.whole();
            let memory = queue.allocate(MemoryKind::Readback, src.size, "reports of launches")?;
            copies.push(Command::Copy { src, dst: memory.whole() });
            readbacks.push(memory);
        }
        let mut launches = Vec::with_capacity(reports.launches.len());
        let mut reporting = reports.launches.iter().peekable();
        let mut total = 0;
        let mut written = Vec::new();
        let mut note_writes = |command: &Command| {
            command.for_each_access(|range, writes| {
                if writes && written.last() != Some(&range.memory) {
                    written.push(range.memory);
                }
            });
        };
        for index in 0..=list.commands.len() {
            for Replay { recorded, .. } in list.replays_at(index) {
                total += recorded.launches();
                recorded.list().commands.iter().for_each(&mut note_writes);
            }
            let Some(command) = list.commands.get(index) else { break };
            total +=
                u64::from(matches!(command, Command::Dispatch(dispatch) if dispatch.is_launch()));
            note_writes(command);
            if let Some(launch) = reporting.next_if(|launch| launch.command_index == index) {
                launches.push((launch.clone(), total));
            }
        }
        written.sort_unstable();
        written.dedup();
        let stride = REPORT_BYTES.max(queue.info.binding_alignment);
        let thread = thread::current().id();
        Ok(Some(Self { launches, total, stride, copies, readbacks, thread, written }))
    }

    /// Returns the commands that copy the reports, to be executed after the launches.
    pub(crate) fn copies(&self) -> impl Iterator<Item = Command> + '_ {
        self.copies.iter().cloned()
    }

    /// Returns the error of the first failed launch. The submission must be done.
    fn failure(&self, queue: &SubmissionQueue) -> Option<GpuError> {
        for (memory, launches) in self.readbacks.iter().zip(self.launches.chunks(REPORTS_PER_BLOCK))
        {
            let mut bytes = vec![0; launches.len() * self.stride as usize];
            let read = queue.driver.read(memory.id(), 0, &mut bytes);
            if let Err(error) = queue.note_loss(read) {
                return Some(error);
            }
            for (report, launch) in bytes.chunks(self.stride as usize).zip(launches) {
                // A launch failed if it set the first `u32` of its report.
                if report.iter().take(4).any(|byte| *byte != 0) {
                    return Some(self.error(queue, launch));
                }
            }
        }
        None
    }

    fn error(
        &self,
        queue: &SubmissionQueue,
        (launch, number): &(ReportingLaunch, u64),
    ) -> GpuError {
        let FailureReport { problem, limit, help } = &*launch.failure_report;
        let which = match self.total {
            1 => "the launch".to_owned(),
            total => format!("launch {number} of {total}"),
        };
        GpuError::Kernel(KernelError {
            label: launch.label.as_deref().map(str::to_owned),
            kernel: launch.kernel.clone(),
            device: queue.info.name.clone(),
            driver: queue.info.driver.clone(),
            problem: format!("{which} {problem}"),
            limit: Some(limit.clone()),
            help: help.clone(),
        })
    }
}

/// A submission that failed for a reason that no launch reports.
#[derive(Debug, Clone)]
pub(crate) struct FailedSubmission {
    pub submission: SubmissionIndex,
    /// The thread that submitted it.
    pub thread: ThreadId,
    /// The allocations that it wrote.
    pub written: Arc<[MemoryId]>,
}

/// A submission with a failed launch.
struct Failure {
    submission: SubmissionIndex,
    /// The thread that submitted it.
    thread: ThreadId,
    /// The allocations that it wrote.
    written: Arc<[MemoryId]>,
    error: GpuError,
    /// The last submission at the time of the first report: waits for later submissions do not
    /// report the failure again.
    last_when_reported: Option<SubmissionIndex>,
    /// The same for waits of the submitting thread.
    last_when_reported_to_submitter: Option<SubmissionIndex>,
}

/// The failed submissions of a device.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Vec<Failure>>);

/// Which failures a wait reports: of those in the awaited submission and earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// None: the caller does not wait for results.
    None,
    /// Those that no wait has reported yet.
    New,
    /// That of the awaited submission; those of this thread's submissions, and of submissions that
    /// wrote the allocation being read, unless reported before the awaited work was submitted.
    Reader(Option<MemoryId>),
    /// As `Reader`, but for a task: without those of this thread's submissions. Tasks share
    /// threads, so the thread does not identify the task that submitted.
    Task(Option<MemoryId>),
}

impl Failures {
    fn lock(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes completed submissions with `drain`, and reads their reports. A concurrent call waits
    /// until that is done.
    pub(crate) fn collect<T>(
        &self,
        queue: &SubmissionQueue,
        drain: impl FnOnce() -> Vec<T>,
        readback: impl Fn(&T) -> Option<(SubmissionIndex, &ReportReadback)>,
    ) -> Vec<T> {
        let mut failures = self.lock();
        let done = drain();
        for (submission, readback) in done.iter().filter_map(readback) {
            let Some(error) = readback.failure(queue) else { continue };
            // Cancelled by the time limit: waits return that error instead.
            if queue.cancellations.contains(submission) {
                continue;
            }
            log::error!("{error}");
            let (thread, written) = (readback.thread, Arc::from(&*readback.written));
            remember(&mut failures, FailedSubmission { submission, thread, written }, error);
        }
        done
    }

    /// Adds submissions that failed with an error.
    pub(crate) fn add(&self, submissions: Vec<FailedSubmission>, error: &GpuError) {
        let mut failures = self.lock();
        submissions.into_iter().for_each(|it| remember(&mut failures, it, error.clone()));
    }

    /// Stops reporting the failures so far to readers of an allocation: its contents are new.
    pub(crate) fn forget(&self, memory: MemoryId) {
        for failure in self.lock().iter_mut().filter(|it| it.written.contains(&memory)) {
            failure.written = failure.written.iter().copied().filter(|it| *it != memory).collect();
        }
    }

    /// Returns the failure that a wait for `submission` reports, if there is one: that of the
    /// submission itself, otherwise the first before it. `last` is the latest submission.
    ///
    /// Threads that share a device but no data do not see each other's failures. Work submitted
    /// before the first report may use the failed results, so all waits for it fail with the same
    /// error; waits for work submitted after the report succeed. The submitting thread gets the
    /// report even if other threads got it before.
    pub(crate) fn failure_for_wait(
        &self,
        submission: SubmissionIndex,
        scope: FailureScope,
        last: SubmissionIndex,
    ) -> Option<GpuError> {
        let mut failures = self.lock();
        if failures.is_empty() {
            return None;
        }
        let is_task = matches!(scope, FailureScope::Task(_));
        let thread = (!is_task).then(|| thread::current().id());
        let is_reportable = |failure: &Failure| match (scope, failure.last_when_reported) {
            _ if failure.submission > submission => false,
            (FailureScope::None, _) | (FailureScope::New, Some(_)) => false,
            (FailureScope::New, None) => true,
            (FailureScope::Reader(_) | FailureScope::Task(_), _)
                if failure.submission == submission =>
            {
                true
            }
            (FailureScope::Reader(read) | FailureScope::Task(read), last_when_reported) => {
                let own = Some(failure.thread) == thread;
                let last_when_reported =
                    if own { failure.last_when_reported_to_submitter } else { last_when_reported };
                last_when_reported.is_none_or(|latest| submission <= latest)
                    && (own || read.is_some_and(|read| failure.written.contains(&read)))
            }
        };
        let awaited =
            failures.iter().position(|it| it.submission == submission && is_reportable(it));
        let at = awaited.or_else(|| failures.iter().position(is_reportable))?;
        let failure = &mut failures[at];
        failure.last_when_reported.get_or_insert(last);
        if Some(failure.thread) == thread {
            failure.last_when_reported_to_submitter.get_or_insert(last);
        }
        Some(failure.error.clone())
    }
}

/// Adds a failure; forgets the oldest one if there are too many.
fn remember(failures: &mut Vec<Failure>, failed: FailedSubmission, error: GpuError) {
    if failures.len() == MAX_REMEMBERED {
        failures.remove(0);
    }
    let FailedSubmission { submission, thread, written } = failed;
    failures.push(Failure {
        submission,
        thread,
        written,
        error,
        last_when_reported: None,
        last_when_reported_to_submitter: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::InterruptedError;
    use crate::core::id::Slots;

    /// They are reported like failed launches: to readers of what they wrote.
    #[test]
    fn added_failures_are_reported() {
        let [written, other] = memories();
        let failures = failures(&[], true, other);
        let submission = SubmissionIndex(5);
        let thread = thread::current().id();
        let error =
            GpuError::Interrupted(InterruptedError { function: None, device: "five".to_owned() });
        failures
            .add(vec![FailedSubmission { submission, thread, written: [written].into() }], &error);
        let last = SubmissionIndex(6);
        let found = |at, scope| failures.failure_for_wait(SubmissionIndex(at), scope, last);
        assert!(found(4, FailureScope::Reader(Some(written))).is_none());
        assert!(found(6, FailureScope::None).is_none());
        assert!(found(6, FailureScope::Task(Some(written))).is_some());
        assert!(found(7, FailureScope::Task(Some(written))).is_none(), "submitted afterwards");
    }

    /// Returns failures of submissions of this thread, or of another one, that all wrote an
    /// allocation.
    fn failures(submissions: &[u64], is_own: bool, written: MemoryId) -> Failures {
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        let failure = |submission: &u64| Failure {
            submission: SubmissionIndex(*submission),
            thread: if is_own { thread::current().id() } else { other },
            written: [written].into(),
            error: GpuError::Interrupted(InterruptedError {
                function: None,
                device: submission.to_string(),
            }),
            last_when_reported: None,
            last_when_reported_to_submitter: None,
        };
        Failures(Mutex::new(submissions.iter().map(failure).collect()))
    }

    /// Returns two allocations.
    fn memories() -> [MemoryId; 2] {
        let mut slots = Slots::default();
        [slots.insert(()), slots.insert(())]
    }

    fn reported(
        failures: &Failures,
        submission: u64,
        scope: FailureScope,
        last: u64,
    ) -> Option<String> {
        failures.failure_for_wait(SubmissionIndex(submission), scope, SubmissionIndex(last)).map(
            |error| match error {
                GpuError::Interrupted(InterruptedError { device, .. }) => device,
                other => panic!("{other}"),
            },
        )
    }

    const THIS_THREAD: FailureScope = FailureScope::Reader(None);

    #[test]
    fn later_submissions_do_not_report_failure() {
        let failures = failures(&[3], true, memories()[0]);
        assert_eq!(reported(&failures, 2, THIS_THREAD, 5), None);
        assert_eq!(reported(&failures, 4, FailureScope::None, 5), None);
        assert_eq!(reported(&failures, 4, THIS_THREAD, 5).as_deref(), Some("3"));
        // Waits for work submitted before the first report (up to 5) report it again; waits for the
        // submission itself always do.
        assert_eq!(reported(&failures, 5, THIS_THREAD, 9).as_deref(), Some("3"));
        assert_eq!(reported(&failures, 3, THIS_THREAD, 9).as_deref(), Some("3"));
        // Waits for later submissions do not.
        assert_eq!(reported(&failures, 6, THIS_THREAD, 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::New, 9), None);
    }

    #[test]
    fn readers_on_other_threads_get_failures() {
        let [written, other] = memories();
        let failures = failures(&[3], false, written);
        assert_eq!(reported(&failures, 5, THIS_THREAD, 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::Reader(Some(other)), 9), None);
        assert_eq!(
            reported(&failures, 5, FailureScope::Reader(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(
            reported(&failures, 3, THIS_THREAD, 9).as_deref(),
            Some("3"),
            "a wait for that submission"
        );
    }

    #[test]
    fn new_contents_have_no_failures() {
        let [written, other] = memories();
        let failures = failures(&[3], false, written);
        let read = |memory| reported(&failures, 5, FailureScope::Reader(Some(memory)), 9);
        failures.forget(other);
        assert_eq!(read(written).as_deref(), Some("3"));
        failures.forget(written);
        assert_eq!(read(written), None);
        assert_eq!(reported(&failures, 3, THIS_THREAD, 9).as_deref(), Some("3"), "its own wait");
    }

    #[test]
    fn tasks_get_failures_of_awaited_work() {
        let [written, other] = memories();
        let failures = failures(&[3], true, written);
        // This thread submitted, but its current task may be unrelated.
        assert_eq!(reported(&failures, 5, FailureScope::Task(None), 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::Task(Some(other)), 9), None);
        assert_eq!(reported(&failures, 3, FailureScope::Task(None), 9).as_deref(), Some("3"));
        assert_eq!(
            reported(&failures, 5, FailureScope::Task(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(
            reported(&failures, 5, THIS_THREAD, 9).as_deref(),
            Some("3"),
            "blocking waits of the thread still report it"
        );
    }

    #[test]
    fn awaited_submission_is_reported_first() {
        let failures = failures(&[3, 4], true, memories()[0]);
        assert_eq!(reported(&failures, 4, THIS_THREAD, 4).as_deref(), Some("4"));
        assert_eq!(reported(&failures, 9, FailureScope::New, 9).as_deref(), Some("3"));
        assert_eq!(reported(&failures, 9, FailureScope::New, 9), None);
    }

    #[test]
    fn submitting_thread_always_gets_the_failure() {
        let failures = failures(&[3], true, memories()[0]);
        let is_reported_elsewhere = thread::scope(|scope| {
            let wait = || {
                failures
                    .failure_for_wait(SubmissionIndex(5), FailureScope::New, SubmissionIndex(5))
                    .is_some()
            };
            scope.spawn(wait).join().unwrap()
        });
        assert!(is_reported_elsewhere);
        let reported = |submission| {
            failures.failure_for_wait(
                SubmissionIndex(submission),
                FailureScope::Reader(None),
                SubmissionIndex(6),
            )
        };
        assert!(reported(6).is_some(), "this thread submitted it");
        assert!(reported(7).is_none(), "submitted after the first report");
    }
}
