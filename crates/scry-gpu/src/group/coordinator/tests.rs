//! Tests of matching, and of the texts of faults.

use std::thread;
use std::time::Duration;

use super::*;
use crate::api::dtype::DType;
use crate::api::reduce_op::ReduceOp;

const SUM: Operation = Operation::AllReduce(ReduceOp::Sum);

fn call(operation: Operation, count: usize) -> Call {
    Call { operation, dtype: DType::U8, count, on_devices: false }
}

/// Makes one call for each rank, on a thread each; `None` leaves the group instead.
fn run(calls: Vec<Option<Call>>, limit: Duration) -> Vec<Option<Result<Vec<u8>, Fault>>> {
    let coordinator = Arc::new(Coordinator::new(calls.len()));
    let start = |(rank, call): (usize, Option<Call>)| {
        let coordinator = coordinator.clone();
        thread::spawn(move || {
            let wait = Wait { limit, interrupted: &|| false };
            let Some(call) = call else {
                coordinator.leave(rank);
                return None;
            };
            let data = vec![rank as u8; call.count];
            let received = coordinator.exchange(rank, &call, data, &wait);
            Some(received.map(|received| received.to_vec()))
        })
    };
    let threads: Vec<_> = calls.into_iter().enumerate().map(start).collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

/// Asserts that all ranks that call get the same fault, and returns its ranks and text.
fn fault(calls: Vec<Option<Call>>, limit: Duration) -> (Vec<usize>, String) {
    let faults: Vec<Fault> = run(calls, limit)
        .into_iter()
        .flatten()
        .map(|result| result.expect_err("the calls do not match"))
        .collect();
    assert!(faults.iter().all(|fault| *fault == faults[0]), "{faults:?}");
    (faults[0].ranks.clone(), faults[0].problem.clone())
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn messages_pass_between_two_of_three() {
    let calls = vec![
        Some(call(Operation::Recv { from: 2 }, 3)),
        None,
        Some(call(Operation::Send { to: 0 }, 3)),
    ];
    assert_eq!(run(calls, LONG), [Some(Ok(vec![2; 3])), None, Some(Ok(vec![]))]);
}

#[test]
fn the_rank_that_differs_is_named() {
    let calls = vec![Some(call(SUM, 4)), Some(call(SUM, 5)), Some(call(SUM, 4))];
    let (ranks, problem) = fault(calls, LONG);
    assert_eq!(ranks, [1]);
    assert_eq!(
        problem,
        "the ranks make different calls: rank 0 calls all_reduce(sum) of 4 u8, rank 1 calls \
         all_reduce(sum) of 5 u8"
    );
    let calls = vec![Some(call(SUM, 4)), Some(call(Operation::AllGather, 4))];
    assert_eq!(fault(calls, LONG).0, [1], "rank 0 is right where there is no majority");
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let send = |to| Some(call(Operation::Send { to }, 1));
    let (ranks, problem) = fault(vec![send(1), send(0)], LONG);
    assert_eq!(ranks, [0, 1]);
    assert_eq!(
        problem,
        "the ranks make different calls: rank 0 calls send to rank 1 of 1 u8, rank 1 calls send to \
         rank 0 of 1 u8"
    );
    let calls = vec![Some(call(SUM, 4)), send(0)];
    assert_eq!(fault(calls, LONG).0, [0, 1]);
}

#[test]
fn messages_of_other_lengths_are_faults() {
    let calls =
        vec![Some(call(Operation::Recv { from: 1 }, 3)), Some(call(Operation::Send { to: 0 }, 4))];
    let (ranks, problem) = fault(calls, LONG);
    assert_eq!(ranks, [0, 1]);
    assert!(problem.contains("rank 1 calls send to rank 0 of 4 u8"), "{problem}");
}

#[test]
fn a_rank_that_left_is_named() {
    let (ranks, problem) = fault(vec![Some(call(SUM, 1)), Some(call(SUM, 1)), None], LONG);
    assert_eq!((ranks, &*problem), (vec![2], "rank 2 has left the group"));
    let recv = Some(call(Operation::Recv { from: 1 }, 1));
    assert_eq!(fault(vec![recv, None], LONG).0, [1]);
}

/// Ranks 0 and 2 wait for rank 1, which makes no call.
#[test]
fn silent_ranks_are_named_at_the_limit() {
    let coordinator = Coordinator::new(3);
    let limit = Duration::from_secs(3);
    let exchange = |rank| {
        let wait = Wait { limit, interrupted: &|| false };
        coordinator.exchange(rank, &call(SUM, 1), vec![0], &wait)
    };
    let start = Instant::now();
    let (a, b) = thread::scope(|scope| {
        let other = scope.spawn(|| exchange(2));
        (exchange(0), other.join().expect("no panic"))
    });
    assert!(start.elapsed() >= limit);
    let fault = a.expect_err("rank 1 is silent");
    assert_eq!((&fault, fault.kind), (&b.expect_err("as well"), GroupFault::Unresponsive));
    assert_eq!(fault.problem, "rank 1 made no call that matches all_reduce(sum) of 1 u8 within 3s");
    assert_eq!(exchange(1).expect_err("the group has ended"), fault);
}

#[test]
fn interrupts_end_the_group() {
    let coordinator = Coordinator::new(2);
    let wait = Wait { limit: LONG, interrupted: &|| true };
    let interrupted = coordinator.exchange(0, &call(SUM, 1), vec![0], &wait);
    let fault = interrupted.expect_err("it was interrupted");
    assert_eq!(fault.problem, "rank 0 was interrupted by Device::interrupt");
    let wait = Wait { limit: LONG, interrupted: &|| false };
    assert_eq!(coordinator.exchange(1, &call(SUM, 1), vec![0], &wait).unwrap_err(), fault);
}

/// A rank may leave at once after its last call, before others have picked up their results.
#[test]
fn completed_calls_outlive_a_leaving_rank() {
    for _ in 0..50 {
        let coordinator = Coordinator::new(2);
        let exchange = |rank| {
            let wait = Wait { limit: LONG, interrupted: &|| false };
            let result = coordinator.exchange(rank, &call(SUM, 1), vec![1], &wait);
            coordinator.leave(rank);
            result.map(|received| received.to_vec())
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| exchange(1));
            assert_eq!(exchange(0), Ok(vec![2]));
            assert_eq!(other.join().expect("no panic"), Ok(vec![2]));
        });
    }
}

fn unfinished(operation: Operation, number: u64, exceeded: Option<Duration>) -> Progress {
    let call = Call { on_devices: true, ..call(operation, 2) };
    let message = u64::from(!operation.is_collective());
    Progress { submitted: number, oldest: Some(Unfinished { call, number, message, exceeded }) }
}

/// Rank 2 has submitted fewer collectives than the one that the others wait for.
#[test]
fn silent_devices_are_named() {
    let coordinator = Coordinator::new(3);
    let report = |rank, progress| coordinator.report(rank, &progress);
    assert_eq!(report(2, Progress { submitted: 4, oldest: None }), Ok(()));
    assert_eq!(report(1, Progress { submitted: 9, oldest: None }), Ok(()));
    assert_eq!(report(0, unfinished(SUM, 5, None)), Ok(()));
    assert_eq!(coordinator.fault(), None);
    let fault = report(0, unfinished(SUM, 5, Some(Duration::from_secs(3)))).unwrap_err();
    assert_eq!((fault.kind, &*fault.ranks), (GroupFault::Unresponsive, &[2][..]));
    assert_eq!(fault.problem, "rank 2 made no call that matches all_reduce(sum) of 2 u8 within 3s");
    assert_eq!(coordinator.fault(), Some(fault.clone()));
    assert_eq!(report(1, Progress { submitted: 9, oldest: None }), Err(fault));
}

#[test]
fn devices_that_do_not_finish_are_named() {
    let coordinator = Coordinator::new(2);
    assert_eq!(coordinator.report(1, &Progress { submitted: 5, oldest: None }), Ok(()));
    let stuck = unfinished(SUM, 5, Some(Duration::from_secs(3)));
    let fault = coordinator.report(0, &stuck).unwrap_err();
    assert!(fault.problem.starts_with("the GPU of rank 0 did not finish"), "{}", fault.problem);
    assert_eq!(fault.ranks, [0; 0], "no rank is known to be at fault");
    // Rank 1 is busy with an earlier call.
    let coordinator = Coordinator::new(2);
    let mut busy = unfinished(SUM, 4, None);
    busy.submitted = 5;
    assert_eq!(coordinator.report(1, &busy), Ok(()));
    let fault = coordinator.report(0, &stuck).unwrap_err();
    assert_eq!(fault.ranks, [1], "{}", fault.problem);
}

#[test]
fn ranks_that_left_end_unfinished_calls() {
    let coordinator = Coordinator::new(3);
    coordinator.report(2, &Progress { submitted: 5, oldest: None }).unwrap();
    coordinator.leave(2);
    assert_eq!(coordinator.report(0, &unfinished(SUM, 5, None)), Ok(()), "it has made this one");
    let fault = coordinator.report(0, &unfinished(SUM, 6, None)).unwrap_err();
    assert_eq!(fault, Fault::left(2));
}

#[test]
fn peers_of_unfinished_messages_are_named() {
    let coordinator = Coordinator::new(3);
    let send = Operation::Send { to: 1 };
    let stuck = unfinished(send, 0, Some(Duration::from_secs(3)));
    let fault = coordinator.report(0, &stuck).unwrap_err();
    assert_eq!((fault.kind, &*fault.ranks), (GroupFault::Unresponsive, &[1][..]));
}

/// Rank 1 has received the message and left; the device of rank 0 may be busy with other work.
#[test]
fn messages_to_ranks_that_left_may_be_delivered() {
    let coordinator = Coordinator::new(2);
    coordinator.note_messages(1, Messages { peer: 0, sent: 0, received: 1 });
    coordinator.leave(1);
    let send = Operation::Send { to: 1 };
    assert_eq!(coordinator.report(0, &unfinished(send, 0, None)), Ok(()));
    let stuck = unfinished(send, 0, Some(Duration::from_secs(3)));
    let fault = coordinator.report(0, &stuck).unwrap_err();
    assert!(fault.problem.starts_with("the GPU of rank 0 did not finish send"), "{fault:?}");
    assert_eq!(fault.ranks, [0; 0], "rank 1 has made its call");
}

/// Rank 1 has left without the call: rank 0 does not wait for its time limit.
#[test]
fn messages_of_ranks_that_left_are_never_delivered() {
    let received = Messages { peer: 0, sent: 7, received: 0 };
    for (operation, made) in [
        (Operation::Send { to: 1 }, received),
        (Operation::Recv { from: 1 }, Messages { sent: 0, received: 7, ..received }),
        // One with another rank does not count.
        (Operation::Send { to: 1 }, Messages { peer: 2, sent: 9, received: 9 }),
    ] {
        let coordinator = Coordinator::new(3);
        coordinator.note_messages(1, made);
        assert_eq!(coordinator.report(0, &unfinished(operation, 0, None)), Ok(()));
        coordinator.leave(1);
        let fault = coordinator.report(0, &unfinished(operation, 0, None)).unwrap_err();
        assert_eq!(fault, Fault::left(1));
    }
}
