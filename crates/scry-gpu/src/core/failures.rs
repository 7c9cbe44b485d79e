//! Failed launches: their submissions, and the waits that return their errors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::api::error::{GpuError, KernelError, Result};
use crate::core::command::Command;
use crate::core::command_list::CommandList;
use crate::core::driver::FailureReport;
use crate::core::handles::{MemoryId, MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::report::{REPORT_BYTES, REPORTS_PER_BLOCK, Reporting};
use crate::core::submission_queue::SubmissionQueue;

/// Maximum number of failed submissions that are remembered.
const MAX_REMEMBERED: usize = 256;

/// Failure reports in transfer to the host.
pub(crate) struct ReportReadback {
    launches: Vec<(Reporting, u64)>,
    /// Launches of the submission, including those without a report.
    total: u64,
    /// Bytes from one report to the next.
    stride: u64,
    copies: Vec<Command>,
    /// `Readback` memory, one per block of reports.
    readbacks: Vec<Arc<Memory>>,
    /// The thread that submitted.
    thread: ThreadId,
    /// The allocations that the submission writes.
    wrote: Vec<MemoryId>,
}

impl ReportReadback {
    /// Prepares the readback of a list's reports, if it has any.
    pub(crate) fn of(queue: &SubmissionQueue, list: &CommandList) -> Result<Option<Self>> {
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
        let mut wrote = Vec::new();
        for (at, command) in list.commands.iter().enumerate() {
            total +=
                u64::from(matches!(command, Command::Dispatch(dispatch) if dispatch.is_launch()));
            command.for_each_access(|span, writes| {
                if writes && wrote.last() != Some(&span.memory) {
                    wrote.push(span.memory);
                }
            });
            if let Some(launch) = reporting.next_if(|launch| launch.at == at) {
                launches.push((launch.clone(), total));
            }
        }
        wrote.sort_unstable();
        wrote.dedup();
        let stride = REPORT_BYTES.max(queue.info.binding_alignment);
        let thread = thread::current().id();
        Ok(Some(Self { launches, total, stride, copies, readbacks, thread, wrote }))
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
            for (words, launch) in bytes.chunks(self.stride as usize).zip(launches) {
                if words.iter().take(4).any(|byte| *byte != 0) {
                    return Some(self.error(queue, launch));
                }
            }
        }
        None
    }

    fn error(&self, queue: &SubmissionQueue, (launch, number): &(Reporting, u64)) -> GpuError {
        let FailureReport { problem, limit, help } = &*launch.meaning;
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
            limit: limit.clone(),
            help: help.clone(),
        })
    }
}

/// A submission with a failed launch.
struct Failure {
    submission: SubmissionIndex,
    /// The thread that submitted it.
    thread: ThreadId,
    /// The allocations that it wrote.
    wrote: Vec<MemoryId>,
    error: GpuError,
    /// The latest submission when a wait first reported the failure.
    reported_at: Option<SubmissionIndex>,
    /// The latest submission when a wait of the submitting thread first reported it.
    reported_to_submitter_at: Option<SubmissionIndex>,
}

/// The failed submissions of a device.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Vec<Failure>>);

/// The failures that a wait reports, in addition to that of its submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// None, including that of the submission: the caller does not wait for results.
    None,
    /// Failures that no wait has reported yet.
    New,
    /// Failures of this thread's submissions, and of those that wrote the allocation to read.
    Reader(Option<MemoryId>),
    /// Failures of submissions that wrote the allocation that the task reads. Tasks share threads,
    /// so the thread does not identify who submitted.
    Submission(Option<MemoryId>),
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
            // Its waits report the time limit.
            if queue.cancellations.include(submission) {
                continue;
            }
            log::error!("{error}");
            if failures.len() == MAX_REMEMBERED {
                failures.remove(0);
            }
            let (thread, wrote) = (readback.thread, readback.wrote.clone());
            failures.push(Failure {
                submission,
                thread,
                wrote,
                error,
                reported_at: None,
                reported_to_submitter_at: None,
            });
        }
        done
    }

    /// Returns the failure that a wait for `submission` reports, if there is one: that of the
    /// submission itself, otherwise the first before it. `last` is the latest submission.
    ///
    /// Threads that share a device but no data do not see each other's failures. Work submitted
    /// before the first report may use the failed results, so all waits for it fail with the same
    /// error; waits for work submitted after the report succeed. The submitting thread gets the
    /// report even if other threads got it before.
    pub(crate) fn to_report(
        &self,
        submission: SubmissionIndex,
        scope: FailureScope,
        last: SubmissionIndex,
    ) -> Option<GpuError> {
        let mut failures = self.lock();
        if failures.is_empty() {
            return None;
        }
        let is_task = matches!(scope, FailureScope::Submission(_));
        let thread = (!is_task).then(|| thread::current().id());
        let concerns = |failure: &Failure| match (scope, failure.reported_at) {
            _ if failure.submission > submission => false,
            (FailureScope::None, _) | (FailureScope::New, Some(_)) => false,
            (FailureScope::New, None) => true,
            (FailureScope::Reader(_) | FailureScope::Submission(_), _)
                if failure.submission == submission =>
            {
                true
            }
            (FailureScope::Reader(read) | FailureScope::Submission(read), reported_at) => {
                let own = Some(failure.thread) == thread;
                let reported_at = if own { failure.reported_to_submitter_at } else { reported_at };
                reported_at.is_none_or(|latest| submission <= latest)
                    && (own || read.is_some_and(|read| failure.wrote.contains(&read)))
            }
        };
        let itself = failures.iter().position(|it| it.submission == submission && concerns(it));
        let at = itself.or_else(|| failures.iter().position(concerns))?;
        let failure = &mut failures[at];
        failure.reported_at.get_or_insert(last);
        if Some(failure.thread) == thread {
            failure.reported_to_submitter_at.get_or_insert(last);
        }
        Some(failure.error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::InterruptedError;
    use crate::core::id::Slots;

    /// Failures of this thread's submissions, or of another's; each wrote the allocation.
    fn failures(submissions: &[u64], is_own: bool, wrote: MemoryId) -> Failures {
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        let failure = |submission: &u64| Failure {
            submission: SubmissionIndex(*submission),
            thread: if is_own { thread::current().id() } else { other },
            wrote: vec![wrote],
            error: GpuError::Interrupted(InterruptedError {
                function: None,
                device: submission.to_string(),
            }),
            reported_at: None,
            reported_to_submitter_at: None,
        };
        Failures(Mutex::new(submissions.iter().map(failure).collect()))
    }

    /// Two allocations.
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
        failures.to_report(SubmissionIndex(submission), scope, SubmissionIndex(last)).map(|error| {
            match error {
                GpuError::Interrupted(InterruptedError { device, .. }) => device,
                other => panic!("{other}"),
            }
        })
    }

    const ANY: FailureScope = FailureScope::Reader(None);

    #[test]
    fn failures_are_reported_until_submitted_later() {
        let failures = failures(&[3], true, memories()[0]);
        assert_eq!(reported(&failures, 2, ANY, 5), None);
        assert_eq!(reported(&failures, 4, FailureScope::None, 5), None);
        assert_eq!(reported(&failures, 4, ANY, 5).as_deref(), Some("3"));
        // Waits for earlier submissions report it again, waits for the submission itself always.
        assert_eq!(reported(&failures, 5, ANY, 9).as_deref(), Some("3"));
        assert_eq!(reported(&failures, 3, ANY, 9).as_deref(), Some("3"));
        // Waits for later submissions do not.
        assert_eq!(reported(&failures, 6, ANY, 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::New, 9), None);
    }

    #[test]
    fn readers_on_other_threads_get_failures() {
        let [written, other] = memories();
        let failures = failures(&[3], false, written);
        assert_eq!(reported(&failures, 5, ANY, 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::Reader(Some(other)), 9), None);
        assert_eq!(
            reported(&failures, 5, FailureScope::Reader(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(
            reported(&failures, 3, ANY, 9).as_deref(),
            Some("3"),
            "a wait for that submission"
        );
    }

    #[test]
    fn tasks_get_failures_of_awaited_work() {
        let [written, other] = memories();
        let failures = failures(&[3], true, written);
        // This thread submitted, but its current task may be unrelated.
        assert_eq!(reported(&failures, 5, FailureScope::Submission(None), 9), None);
        assert_eq!(reported(&failures, 5, FailureScope::Submission(Some(other)), 9), None);
        assert_eq!(reported(&failures, 3, FailureScope::Submission(None), 9).as_deref(), Some("3"));
        assert_eq!(
            reported(&failures, 5, FailureScope::Submission(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(
            reported(&failures, 5, ANY, 9).as_deref(),
            Some("3"),
            "blocking waits of the thread still report it"
        );
    }

    #[test]
    fn own_failure_is_reported_first() {
        let failures = failures(&[3, 4], true, memories()[0]);
        assert_eq!(reported(&failures, 4, ANY, 4).as_deref(), Some("4"));
        assert_eq!(reported(&failures, 9, FailureScope::New, 9).as_deref(), Some("3"));
        assert_eq!(reported(&failures, 9, FailureScope::New, 9), None);
    }

    #[test]
    fn submitting_thread_always_gets_the_failure() {
        let failures = failures(&[3], true, memories()[0]);
        let is_reported_elsewhere = thread::scope(|scope| {
            let wait = || {
                failures
                    .to_report(SubmissionIndex(5), FailureScope::New, SubmissionIndex(5))
                    .is_some()
            };
            scope.spawn(wait).join().unwrap()
        });
        assert!(is_reported_elsewhere);
        let reported = |submission| {
            failures.to_report(
                SubmissionIndex(submission),
                FailureScope::Reader(None),
                SubmissionIndex(6),
            )
        };
        assert!(reported(6).is_some(), "this thread submitted it");
        assert!(reported(7).is_none(), "submitted after the first report");
    }
}
