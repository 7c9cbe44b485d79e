//! Tests of what a rank notes about its calls, without a GPU: a communicator that records its end,
//! and the null device, which executes nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::api::binding::Sealed as _;
use crate::api::latest_submission::LatestSubmission;
use crate::api::recording::Recording;
use crate::core::encode;
use crate::group::channel::Channel;
use crate::group::coordinator::Coordinator;
use crate::testing::{null_info, observed};

/// A communicator that does nothing.
#[derive(Default)]
struct Silent {
    is_aborted: AtomicBool,
}

impl Communicator for Silent {
    fn failure(&self) -> Option<String> {
        None
    }

    fn abort(self: Arc<Self>) {
        self.is_aborted.store(true, Ordering::Release);
    }

    fn destroy(&self) {}
}

/// Rank 0 of two, with what its state refers to.
struct Rank {
    state: Arc<State>,
    silent: Arc<Silent>,
    coordinator: Arc<Coordinator>,
    _host: Arc<HostMemory>,
}

fn rank() -> Rank {
    let device = observed(null_info()).0;
    let seat = Seat { rank: 0, world: 2 };
    let coordinator = Arc::new(Coordinator::new(2));
    let channel = Channel::Process { coordinator: coordinator.clone(), rank: 0 };
    let host = Arc::new(HostMemory::new(channel, seat));
    let silent = Arc::new(Silent::default());
    let state = State {
        device,
        seat,
        communicator: silent.clone(),
        host: Arc::downgrade(&host),
        limit: Arc::new(Mutex::new(Duration::from_millis(20))),
        checks: false,
        compared: Mutex::default(),
        progress: Mutex::new(InProgress::new()),
        fault: Mutex::default(),
    };
    Rank { state: Arc::new(state), silent, coordinator, _host: host }
}

fn watched(rank: &Rank) -> Watched {
    let operation = Operation::AllReduce(ReduceOp::Sum);
    let call = Call { operation, dtype: DType::F32, count: 5, on_devices: false };
    Watched { state: rank.state.clone(), call, buffers: [].into() }
}

/// Submits a fill, and returns its submission.
fn submit(rank: &Rank) -> SubmissionIndex {
    let x = rank.state.device.alloc::<u32>(4).unwrap();
    x.fill(1).unwrap();
    // The first submission of a device.
    SubmissionIndex(1)
}

/// NCCL may block in the first call of a kind, before there is a submission.
#[test]
fn calls_being_submitted_are_watched() {
    let rank = rank();
    let watched = watched(&rank);
    assert!(rank.state.poll().unwrap().1.is_none());
    watched.begin();
    let (submitted, oldest) = rank.state.poll().unwrap();
    assert_eq!((submitted, oldest.unwrap().number), (0, 1));
    watched.end(None);
    assert!(rank.state.poll().unwrap().1.is_none(), "it failed");
    watched.begin();
    watched.end(Some((submit(&rank), &[].into())));
    assert_eq!(rank.state.poll().unwrap().0, 1);
}

/// Waits for the results of unfinished calls fail, and later calls, also of recordings.
#[test]
fn calls_after_the_end_fail() {
    let rank = rank();
    let watched = watched(&rank);
    lock(&rank.state.compared).insert(Kind::of(&watched.call));
    assert!(watched.prepare().is_ok());
    rank.coordinator.abort(Fault::lost(1, "ended"));
    let error = watched.prepare().unwrap_err();
    assert!(matches!(&error, GpuError::Group(it) if it.ranks() == [1]), "{error}");
    assert!(rank.silent.is_aborted.load(Ordering::Acquire));
    // A call that was being submitted at that time.
    watched.begin();
    let submission = submit(&rank);
    watched.end(Some((submission, &[].into())));
    assert!(rank.state.poll().unwrap().1.is_none(), "it is not watched");
    assert!(watched.settle().is_err());
    let error = rank.state.device.wait().unwrap_err();
    assert!(matches!(&error, GpuError::Group(it) if it.ranks() == [1]), "{error}");
    assert!(error.to_string().starts_with("Device::wait: rank 0 of 2: rank 1 ended"), "{error}");
}

#[test]
fn calls_of_ranks_that_left_fail() {
    let rank = rank();
    let watched = watched(&rank);
    rank.state.leave();
    let error = watched.prepare().unwrap_err();
    assert!(error.to_string().contains("rank 0 has left the group"), "{error}");
    assert!(!rank.silent.is_aborted.load(Ordering::Acquire));
}

/// The other rank does not make the call.
#[test]
fn first_calls_of_a_kind_are_compared() {
    let rank = rank();
    let error = watched(&rank).prepare().unwrap_err();
    assert!(error.to_string().contains("rank 1 made no call that matches all_reduce"), "{error}");
    assert!(rank.silent.is_aborted.load(Ordering::Acquire));
}

/// Replays by themselves, and within a batch.
#[test]
fn recordings_are_observed() {
    let rank = rank();
    let watched = watched(&rank);
    lock(&rank.state.compared).insert(Kind::of(&watched.call));
    let context = &rank.state.device.context;
    let x = rank.state.device.alloc::<u32>(4).unwrap();
    let mut list = CommandList::default();
    encode::fill(context, &mut list, x.view(), &1u32.to_ne_bytes()).unwrap();
    list.observers.push(Arc::new(watched));
    let recorded = context.record(list).unwrap();
    assert_eq!(recorded.list().written().len(), 1);
    let recording = Recording::new(context, Some(recorded), LatestSubmission::default());
    let submitted = || rank.state.poll().unwrap().0;
    recording.replay().unwrap().wait().unwrap();
    assert_eq!(submitted(), 1);
    let mut batch = rank.state.device.batch();
    batch.fill(&x, 2).unwrap().replay(&recording).unwrap().replay(&recording).unwrap();
    batch.submit().unwrap();
    assert_eq!(submitted(), 3);
    batch.replay(&recording).unwrap();
    rank.coordinator.abort(Fault::lost(1, "ended"));
    for failed in [batch.submit(), recording.replay().map(drop)] {
        let error = failed.unwrap_err();
        assert!(matches!(&error, GpuError::Group(it) if it.ranks() == [1]), "{error}");
    }
    assert_eq!(submitted(), 3);
}

/// A message is numbered among those with its peer in its direction, also while it is submitted.
#[test]
fn messages_are_counted_by_peer() {
    let rank = rank();
    let watched = |operation| {
        let call = Call { operation, dtype: DType::F32, count: 5, on_devices: false };
        Watched { state: rank.state.clone(), call, buffers: [].into() }
    };
    let (send, recv) = (Operation::Send { to: 1 }, Operation::Recv { from: 1 });
    for operation in [send, recv, send] {
        let watched = watched(operation);
        watched.begin();
        watched.end(Some((submit(&rank), &[].into())));
    }
    let messages = Messages { peer: 1, sent: 2, received: 1 };
    assert!(rank.state.has_messages());
    assert_eq!(rank.state.take_messages(), [messages]);
    assert!(!rank.state.has_messages());
    assert_eq!(rank.state.take_messages(), [], "they have been reported");
    rank.state.device.wait().unwrap();
    assert!(rank.state.poll().unwrap().1.is_none(), "they are finished");
    let failed = watched(recv);
    failed.begin();
    assert_eq!(rank.state.poll().unwrap().1.unwrap().message, 2);
    failed.end(None);
    assert_eq!(rank.state.take_messages(), [], "it was not submitted");
}
