//! Matches the calls of all ranks, compares them, and computes their results.
//!
//! A rank contributes its call with its data and waits. A collective is complete when all ranks
//! have contributed it; a send is, when its receiver waits for it. The first fault ends every call
//! in progress, and each later one at once: ranks cannot get out of step.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::fault::{Fault, ranks_text};
use super::progress::{Messages, Progress, Unfinished};
use super::results::{Received, results};
use super::wait::{Ended, Wait};
use crate::api::error::GroupFault;
use crate::core::collective::{Call, Operation};
use crate::lifecycle::fork_guard::Process;

/// The meeting point of the ranks of a group.
#[derive(Debug)]
pub(super) struct Coordinator {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether there is a fault.
    has_ended: Arc<AtomicBool>,
    /// A forked process has none of the threads of the group, of which one may have the lock.
    process: Process,
}

#[derive(Debug)]
struct State {
    members: Vec<Member>,
    /// The number of collectives that each rank has submitted to its device.
    submitted: Vec<u64>,
    /// The number of the oldest call that each device had not finished when it last reported.
    oldest: Vec<Option<u64>>,
    /// The messages that a rank has submitted, by the rank and its peer.
    messages: HashMap<(usize, usize), Messages>,
    fault: Option<Fault>,
    has_ended: Arc<AtomicBool>,
}

/// What a rank is doing.
#[derive(Debug)]
enum Member {
    /// It is not in a call.
    Idle,
    /// It waits for other ranks.
    Calling(Call, Vec<u8>),
    /// Its call is complete; it has not received the result yet.
    Done(Received),
    /// It has left.
    Left,
}

impl Coordinator {
    pub(super) fn new(world: usize) -> Self {
        let members = (0..world).map(|_| Member::Idle).collect();
        let has_ended = Arc::new(AtomicBool::new(false));
        let submitted = vec![0; world];
        let (oldest, fault) = (vec![None; world], None);
        let (messages, ended) = (HashMap::new(), has_ended.clone());
        let state = State { members, submitted, oldest, messages, fault, has_ended: ended };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { state, changed, has_ended, process: Process::current() }
    }

    /// Makes the call of `rank`, which contributes `data`. Returns what it receives.
    pub(super) fn exchange(
        &self,
        rank: usize,
        call: &Call,
        data: Vec<u8>,
        wait: &Wait<'_>,
    ) -> Result<Received, Fault> {
        if self.process.has_forked() {
            return Err(Fault::forked(rank));
        }
        let start = Instant::now();
        let mut state = self.lock();
        state.fault.clone().map_or(Ok(()), Err)?;
        state.members[rank] = Member::Calling(*call, data);
        state.advance();
        self.changed.notify_all();
        loop {
            if let Some(result) = state.take_result(rank) {
                return result;
            }
            if let Some(ended) = wait.ended(start) {
                let fault = match ended {
                    Ended::Interrupt => Fault::interrupted(rank),
                    Ended::Limit => state.unresponsive(call, wait),
                };
                state.abort(fault);
                self.changed.notify_all();
                continue;
            }
            let waited = self.changed.wait_timeout(state, wait.slice(start));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Notes how far the device of `rank` is. Returns the fault of the group, which may result from
    /// the report.
    pub(super) fn report(&self, rank: usize, progress: &Progress) -> Result<(), Fault> {
        if self.process.has_forked() {
            return Err(Fault::forked(rank));
        }
        let mut state = self.lock();
        state.submitted[rank] = progress.submitted;
        state.oldest[rank] = progress.oldest.map(|oldest| oldest.number);
        if let Some(fault) = progress.oldest.and_then(|oldest| state.judge(rank, &oldest)) {
            state.abort(fault);
            self.changed.notify_all();
        }
        state.fault.clone().map_or(Ok(()), Err)
    }

    /// Notes the messages between `rank` and another one that its device was given.
    pub(super) fn note_messages(&self, rank: usize, messages: Messages) {
        if !self.process.has_forked() {
            self.lock().messages.insert((rank, messages.peer), messages);
        }
    }

    /// Returns the fault that has ended the group. Fast if there is none.
    pub(super) fn fault(&self) -> Option<Fault> {
        let has_ended = self.has_ended.load(Ordering::Acquire) && !self.process.has_forked();
        has_ended.then(|| self.lock().fault.clone()).flatten()
    }

    /// Ends the group, unless it has ended already.
    pub(super) fn abort(&self, fault: Fault) {
        if self.process.has_forked() {
            return;
        }
        self.lock().abort(fault);
        self.changed.notify_all();
    }

    /// The rank makes no more calls. Ranks that need it get a fault.
    pub(super) fn leave(&self, rank: usize) {
        if self.process.has_forked() {
            return;
        }
        let mut state = self.lock();
        state.members[rank] = Member::Left;
        state.advance();
        self.changed.notify_all();
    }

    // Poison is ignored: a panic under the lock leaves members in one of their states.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Completes the calls that can be, and finds those that never will be.
    fn advance(&mut self) {
        if self.fault.is_some() {
            return;
        }
        let advanced = self.deliver_messages().and_then(|()| self.complete_collective());
        if let Err(fault) = advanced.and_then(|()| self.check_progress()) {
            self.abort(fault);
        }
    }

    fn abort(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.has_ended.store(true, Ordering::Release);
    }

    /// Returns how the call of `rank` ended; `None` if it has not. A completed call is a success
    /// whatever happens afterwards.
    fn take_result(&mut self, rank: usize) -> Option<Result<Received, Fault>> {
        let is_done = matches!(self.members[rank], Member::Done(_));
        if !is_done && self.fault.is_none() {
            return None;
        }
        match std::mem::replace(&mut self.members[rank], Member::Idle) {
            Member::Done(received) => Some(Ok(received)),
            _ => self.fault.clone().map(Err),
        }
    }

    fn call(&self, rank: usize) -> Option<&Call> {
        match &self.members[rank] {
            Member::Calling(call, _) => Some(call),
            _ => None,
        }
    }

    fn take_data(&mut self, rank: usize) -> Vec<u8> {
        match std::mem::replace(&mut self.members[rank], Member::Idle) {
            Member::Calling(_, data) => data,
            _ => unreachable!("the rank was found to be in a call"),
        }
    }

    /// Delivers each message whose sender and receiver are both in their calls.
    fn deliver_messages(&mut self) -> Result<(), Fault> {
        for sender in 0..self.members.len() {
            let Some(sent) = self.call(sender).copied() else { continue };
            let Operation::Send { to } = sent.operation else { continue };
            let Some(expected) = self.call(to).copied() else { continue };
            if expected.operation != (Operation::Recv { from: sender }) {
                continue;
            }
            if (sent.dtype, sent.count) != (expected.dtype, expected.count) {
                return Err(differing(vec![sender, to], &[(sender, sent), (to, expected)]));
            }
            let data = self.take_data(sender);
            self.members[sender] = Member::Done(Received::nothing());
            self.members[to] = Member::Done(Received::all(data));
        }
        Ok(())
    }

    /// Computes the results if all ranks are in the same collective.
    fn complete_collective(&mut self) -> Result<(), Fault> {
        let ranks = 0..self.members.len();
        let calls: Vec<Call> = ranks.filter_map(|rank| self.call(rank).copied()).collect();
        let are_collectives = calls.iter().all(|call| call.operation.is_collective());
        if calls.len() < self.members.len() || !are_collectives {
            return Ok(());
        }
        // The call that most ranks make; of equally frequent ones that of the lowest rank.
        let frequency = |call: &Call| calls.iter().filter(|it| *it == call).count();
        let common = calls.iter().rev().max_by_key(|call| frequency(call)).copied();
        let Some(common) = common else { return Ok(()) };
        let different: Vec<(usize, Call)> =
            calls.iter().copied().enumerate().filter(|(_, call)| *call != common).collect();
        if !different.is_empty() {
            let ranks = different.iter().map(|(rank, _)| *rank).collect();
            let first = calls.iter().position(|call| *call == common).unwrap_or(0);
            let shown: Vec<_> = [(first, common)].into_iter().chain(different).collect();
            return Err(differing(ranks, &shown));
        }
        let contributions = (0..calls.len()).map(|rank| self.take_data(rank)).collect();
        let results = results(&common, contributions);
        self.members = results.into_iter().map(Member::Done).collect();
        Ok(())
    }

    /// Returns a fault if a call needs a rank that has left, or if all ranks wait for each other.
    fn check_progress(&self) -> Result<(), Fault> {
        let ranks = 0..self.members.len();
        let left = |rank: &usize| matches!(self.members[*rank], Member::Left);
        for call in ranks.clone().filter_map(|rank| self.call(rank)) {
            let needed = match call.operation {
                Operation::Send { to: peer } | Operation::Recv { from: peer } => peer..peer + 1,
                _ => ranks.clone(),
            };
            if let Some(rank) = needed.into_iter().find(left) {
                return Err(Fault::left(rank));
            }
        }
        let calls: Vec<(usize, Call)> =
            ranks.clone().filter_map(|rank| Some((rank, *self.call(rank)?))).collect();
        if calls.is_empty() || calls.len() + ranks.filter(left).count() < self.members.len() {
            return Ok(());
        }
        Err(differing(calls.iter().map(|(rank, _)| *rank).collect(), &calls))
    }

    /// Returns the fault of a call that the device of `rank` has not finished, if it will never be:
    /// a rank that it needs has left, or its time limit has passed.
    fn judge(&self, rank: usize, oldest: &Unfinished) -> Option<Fault> {
        let call = oldest.call;
        let ranks = 0..self.members.len();
        let has_left = |rank: usize| matches!(self.members[rank], Member::Left);
        let missing: Vec<usize> = match call.operation {
            // A rank may leave when the message is delivered, and this device be busy with later
            // work of the same submission.
            Operation::Send { to: peer } | Operation::Recv { from: peer } => {
                let counted = self.messages.get(&(peer, rank)).copied().unwrap_or_default();
                let is_send = matches!(call.operation, Operation::Send { .. });
                let made = if is_send { counted.received } else { counted.sent };
                [peer].into_iter().filter(|_| made < oldest.message).collect()
            }
            _ => ranks.clone().filter(|rank| self.submitted[*rank] < oldest.number).collect(),
        };
        if let Some(left) = missing.iter().find(|rank| has_left(**rank)) {
            return Some(Fault::left(*left));
        }
        let limit = oldest.exceeded?;
        if missing.is_empty() {
            let is_behind = |rank: &usize| self.oldest[*rank].is_some_and(|it| it < oldest.number);
            let behind: Vec<usize> = ranks.filter(is_behind).collect();
            let device = match behind.is_empty() {
                true => format!("the GPU of rank {rank}"),
                false => {
                    format!("{}, whose devices are busy with earlier work,", ranks_text(&behind))
                }
            };
            let problem = format!(
                "{device} did not finish {call} within {limit:?}, although all its ranks have made \
                 the call"
            );
            let help = "look for work on the GPUs of the group that does not end, or raise \
                        DeviceGroup::set_time_limit";
            return Some(Fault::new(GroupFault::Unresponsive, behind, problem, help));
        }
        Some(self.silent(missing, &call, limit))
    }

    /// Returns the fault of a call whose time limit has passed: it names the ranks that the call
    /// waits for.
    fn unresponsive(&self, call: &Call, wait: &Wait<'_>) -> Fault {
        let is_missing = |rank: &usize| match call.operation {
            Operation::Send { to: peer } | Operation::Recv { from: peer } => *rank == peer,
            _ => !self.call(*rank).is_some_and(|call| call.operation.is_collective()),
        };
        self.silent((0..self.members.len()).filter(is_missing).collect(), call, wait.limit)
    }

    /// Returns the fault of ranks that do not make a call.
    fn silent(&self, missing: Vec<usize>, call: &Call, limit: Duration) -> Fault {
        let busy: Vec<String> = missing
            .iter()
            .filter_map(|rank| Some(format!("; rank {rank} is in {}", self.call(*rank)?)))
            .collect();
        let problem = format!(
            "{} made no call that matches {call} within {limit:?}{}",
            ranks_text(&missing),
            busy.concat()
        );
        let help = "look for what keeps it busy, or for a call that it does not make; raise \
                    DeviceGroup::set_time_limit if it needs longer";
        Fault::new(GroupFault::Unresponsive, missing, problem, help)
    }
}

/// Returns the fault of calls that do not fit each other; `ranks` are those at fault.
fn differing(ranks: Vec<usize>, calls: &[(usize, Call)]) -> Fault {
    let calls: Vec<String> =
        calls.iter().map(|(rank, call)| format!("rank {rank} calls {call}")).collect();
    Fault::new(
        GroupFault::Mismatch,
        ranks,
        format!("the ranks make different calls: {}", calls.join(", ")),
        "make the same calls in the same order on every rank, with the same element type and \
         length; each send needs a recv of its receiver",
    )
}

#[cfg(test)]
mod tests;
