//! Launches that reported a failure: which submission had them, and which waits return the error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::api::error::{GpuError, KernelError, Result};
use crate::core::command::Command;
use crate::core::command_list::CommandList;
use crate::core::driver::FailureReport;
use crate::core::handles::{MemoryId, MemoryKind, SubmissionIndex};
use crate::core::memory::Memory;
use crate::core::report::{BYTES, Reporting, SLOTS};
use crate::core::submission_queue::SubmissionQueue;

/// Failed submissions that are remembered.
const REMEMBERED: usize = 256;

/// Reports on their way to the host.
pub(crate) struct ReportReadback {
    launches: Vec<(Reporting, u64)>,
    /// Launches of the submission, those included that do not report.
    all: u64,
    stride: u64,
    copies: Vec<Command>,
    arrived: Vec<Arc<Memory>>,
    /// Who makes the submission.
    thread: ThreadId,
    /// The allocations that it writes.
    wrote: Vec<MemoryId>,
}

impl ReportReadback {
    /// Prepares the way for the reports of a list, if it has any.
    pub(crate) fn of(queue: &SubmissionQueue, list: &CommandList) -> Result<Option<Self>> {
        let reports = &list.reports;
        if reports.launches.is_empty() {
            return Ok(None);
        }
        let (mut copies, mut arrived) = (Vec::new(), Vec::new());
        for block in reports.blocks.iter().take(reports.launches.len().div_ceil(SLOTS)) {
            let src = block.whole();
            let memory = queue.allocate(MemoryKind::Readback, src.size, "reports of launches")?;
            copies.push(Command::Copy { src, dst: memory.whole() });
            arrived.push(memory);
        }
        let mut launches = Vec::with_capacity(reports.launches.len());
        let mut reporting = reports.launches.iter().peekable();
        let mut all = 0;
        let mut wrote = Vec::new();
        for (at, command) in list.commands.iter().enumerate() {
            all +=
                u64::from(matches!(command, Command::Dispatch(dispatch) if dispatch.is_launch()));
            command.for_each_access(|span, writes| {
                if writes && wrote.last() != Some(&span.memory) {
                    wrote.push(span.memory);
                }
            });
            if let Some(launch) = reporting.next_if(|launch| launch.at == at) {
                launches.push((launch.clone(), all));
            }
        }
        wrote.sort_unstable();
        wrote.dedup();
        let stride = BYTES.max(queue.info.binding_alignment);
        let thread = thread::current().id();
        Ok(Some(Self { launches, all, stride, copies, arrived, thread, wrote }))
    }

    /// What fetches the reports, after the launches.
    pub(crate) fn copies(&self) -> impl Iterator<Item = Command> + '_ {
        self.copies.iter().cloned()
    }

    /// The failure of the first launch that reported one. All of them are done.
    fn failure(&self, queue: &SubmissionQueue) -> Option<GpuError> {
        for (memory, launches) in self.arrived.iter().zip(self.launches.chunks(SLOTS)) {
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
        let which = match self.all {
            1 => "the launch".to_owned(),
            all => format!("launch {number} of {all}"),
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

/// A submission of which a launch failed.
struct Failure {
    submission: SubmissionIndex,
    /// Who made the submission.
    thread: ThreadId,
    /// The allocations that it wrote.
    wrote: Vec<MemoryId>,
    error: GpuError,
    /// The last submission at the time when the failure was first reported.
    told: Option<SubmissionIndex>,
    /// The same, for reports to the thread that made the submission.
    maker_told: Option<SubmissionIndex>,
}

/// The failed submissions of a device, until the waits for them have reported it.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Vec<Failure>>);

/// Which failures a wait reports, besides that of the submission that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureScope {
    /// None, not even that: the caller does not wait for results.
    None,
    /// Those that no wait has reported yet.
    New,
    /// Those of the thread that waits, and those of what wrote the allocation that it reads.
    Reader(Option<MemoryId>),
    /// Those of what wrote the allocation that the task reads. Tasks share threads, so that the
    /// thread says nothing about who made a submission.
    Submission(Option<MemoryId>),
}

impl Failures {
    fn lock(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes submissions that are done from `drain`, and reads their reports. Whoever comes second
    /// waits until that has happened.
    pub(crate) fn collect<T>(
        &self,
        queue: &SubmissionQueue,
        drain: impl FnOnce() -> Vec<T>,
        watch: impl Fn(&T) -> Option<(SubmissionIndex, &ReportReadback)>,
    ) -> Vec<T> {
        let mut failures = self.lock();
        let done = drain();
        for (submission, watch) in done.iter().filter_map(watch) {
            let Some(error) = watch.failure(queue) else { continue };
            log::error!("{error}");
            if failures.len() == REMEMBERED {
                failures.remove(0);
            }
            let (thread, wrote) = (watch.thread, watch.wrote.clone());
            let (told, maker_told) = (None, None);
            failures.push(Failure { submission, thread, wrote, error, told, maker_told });
        }
        done
    }

    /// The failure that a wait for `submission` is told of, if there is one: that of this
    /// submission itself, or the first before it. `last` is the latest submission.
    ///
    /// Threads that share a device, but no data, do not see each other's failures. What was
    /// submitted until somebody was told may use the results, so that all waits for it fail alike;
    /// what is submitted later was begun in the knowledge. What others know the thread that made
    /// the submission does not: it is told in any case.
    pub(crate) fn concerning(
        &self,
        submission: SubmissionIndex,
        told: FailureScope,
        last: SubmissionIndex,
    ) -> Option<GpuError> {
        let mut failures = self.lock();
        if failures.is_empty() {
            return None;
        }
        let is_task = matches!(told, FailureScope::Submission(_));
        let thread = (!is_task).then(|| thread::current().id());
        let concerns = |failure: &Failure| match (told, failure.told) {
            _ if failure.submission > submission => false,
            (FailureScope::None, _) | (FailureScope::New, Some(_)) => false,
            (FailureScope::New, None) => true,
            (FailureScope::Reader(_) | FailureScope::Submission(_), _)
                if failure.submission == submission =>
            {
                true
            }
            (FailureScope::Reader(read) | FailureScope::Submission(read), told) => {
                let own = Some(failure.thread) == thread;
                let known = if own { failure.maker_told } else { told };
                known.is_none_or(|known| submission <= known)
                    && (own || read.is_some_and(|read| failure.wrote.contains(&read)))
            }
        };
        let itself = failures.iter().position(|it| it.submission == submission && concerns(it));
        let at = itself.or_else(|| failures.iter().position(concerns))?;
        let failure = &mut failures[at];
        failure.told.get_or_insert(last);
        if Some(failure.thread) == thread {
            failure.maker_told.get_or_insert(last);
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
    fn failures(points: &[u64], is_own: bool, wrote: MemoryId) -> Failures {
        let other = thread::spawn(|| thread::current().id()).join().unwrap();
        let failure = |submission: &u64| Failure {
            submission: SubmissionIndex(*submission),
            thread: if is_own { thread::current().id() } else { other },
            wrote: vec![wrote],
            error: GpuError::Interrupted(InterruptedError {
                function: None,
                device: submission.to_string(),
            }),
            told: None,
            maker_told: None,
        };
        Failures(Mutex::new(points.iter().map(failure).collect()))
    }

    /// Two allocations.
    fn memories() -> [MemoryId; 2] {
        let mut slots = Slots::default();
        [slots.insert(()), slots.insert(())]
    }

    fn told(failures: &Failures, submission: u64, told: FailureScope, last: u64) -> Option<String> {
        failures.concerning(SubmissionIndex(submission), told, SubmissionIndex(last)).map(|error| {
            match error {
                GpuError::Interrupted(InterruptedError { device, .. }) => device,
                other => panic!("{other}"),
            }
        })
    }

    const ANY: FailureScope = FailureScope::Reader(None);

    #[test]
    fn waits_for_a_failed_submission_or_a_later_one_are_told() {
        let failures = failures(&[3], true, memories()[0]);
        assert_eq!(told(&failures, 2, ANY, 5), None);
        assert_eq!(told(&failures, 4, FailureScope::None, 5), None);
        assert_eq!(told(&failures, 4, ANY, 5).as_deref(), Some("3"));
        // What was submitted before is told again, the submission itself always.
        assert_eq!(told(&failures, 5, ANY, 9).as_deref(), Some("3"));
        assert_eq!(told(&failures, 3, ANY, 9).as_deref(), Some("3"));
        // What was submitted later is not.
        assert_eq!(told(&failures, 6, ANY, 9), None);
        assert_eq!(told(&failures, 5, FailureScope::New, 9), None);
    }

    #[test]
    fn other_threads_are_told_if_they_read_the_results() {
        let [written, other] = memories();
        let failures = failures(&[3], false, written);
        assert_eq!(told(&failures, 5, ANY, 9), None);
        assert_eq!(told(&failures, 5, FailureScope::Reader(Some(other)), 9), None);
        assert_eq!(
            told(&failures, 5, FailureScope::Reader(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(told(&failures, 3, ANY, 9).as_deref(), Some("3"), "it waits for just that");
    }

    #[test]
    fn tasks_report_what_they_await_on_any_thread() {
        let [written, other] = memories();
        let failures = failures(&[3], true, written);
        // This thread made the submission, but a task of it may know nothing of that.
        assert_eq!(told(&failures, 5, FailureScope::Submission(None), 9), None);
        assert_eq!(told(&failures, 5, FailureScope::Submission(Some(other)), 9), None);
        assert_eq!(told(&failures, 3, FailureScope::Submission(None), 9).as_deref(), Some("3"));
        assert_eq!(
            told(&failures, 5, FailureScope::Submission(Some(written)), 9).as_deref(),
            Some("3")
        );
        assert_eq!(told(&failures, 5, ANY, 9).as_deref(), Some("3"), "the thread still reports it");
    }

    #[test]
    fn each_submission_is_told_of_its_own_failure_first() {
        let failures = failures(&[3, 4], true, memories()[0]);
        assert_eq!(told(&failures, 4, ANY, 4).as_deref(), Some("4"));
        assert_eq!(told(&failures, 9, FailureScope::New, 9).as_deref(), Some("3"));
        assert_eq!(told(&failures, 9, FailureScope::New, 9), None);
    }

    #[test]
    fn the_maker_is_told_although_another_thread_was() {
        let failures = failures(&[3], true, memories()[0]);
        let elsewhere = thread::scope(|scope| {
            let wait = || {
                failures
                    .concerning(SubmissionIndex(5), FailureScope::New, SubmissionIndex(5))
                    .is_some()
            };
            scope.spawn(wait).join().unwrap()
        });
        assert!(elsewhere);
        let told = |submission| {
            failures.concerning(
                SubmissionIndex(submission),
                FailureScope::Reader(None),
                SubmissionIndex(6),
            )
        };
        assert!(told(6).is_some(), "this thread made the submission");
        assert!(told(7).is_none(), "it was told before this was submitted");
    }
}
