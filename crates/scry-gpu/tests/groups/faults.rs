//! Faults of a group: each gives every rank the same error, which names the rank at fault.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{
    Device, DeviceGroup, ErrorKind, GpuError, GroupError, GroupFault, ReduceOp, Rendezvous,
};
use scry_test_support::succeed;

use crate::support::{LONG, TOKEN, cpus, free_address, group_error, join, over_tcp};

/// A time limit that passes.
const SHORT: Duration = Duration::from_secs(3);

/// Runs `program` on each rank of a group of threads, and of a group over TCP.
fn on_both(world: usize, program: impl Fn(DeviceGroup) + Sync) {
    let program = &program;
    thread::scope(|scope| {
        for group in succeed(DeviceGroup::local(&cpus(world))) {
            scope.spawn(move || program(group));
        }
    });
    over_tcp(world, |address, rank| program(succeed(join(address, rank, world, LONG))));
}

#[track_caller]
fn assert_fault(error: &GroupError, fault: GroupFault, ranks: &[usize]) {
    assert_eq!((error.fault(), error.ranks()), (fault, ranks), "{error}");
}

#[test]
fn leaving_ranks_are_named() {
    on_both(3, |group| {
        succeed(group.barrier());
        if group.rank() == 1 {
            return;
        }
        let start = Instant::now();
        let error = group_error(group.barrier());
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert_fault(&error, GroupFault::Lost, &[1]);
        assert_eq!(error.problem(), "rank 1 has left the group");
        // The device remains usable.
        let x = succeed(group.device().upload(&[1u32]));
        assert_eq!(succeed(x.download()), [1]);
    });
}

/// Rank 1 waits for a message of rank 2, which does something else, when rank 0 leaves.
#[test]
fn leaving_rank_0_ends_the_calls_of_others() {
    let rank_1_has_its_error = Barrier::new(2);
    over_tcp(3, |address, rank| {
        let group = succeed(join(address, rank, 3, LONG));
        succeed(group.barrier());
        let start = Instant::now();
        match rank {
            0 => drop(group),
            1 => {
                let x = succeed(group.device().alloc::<u8>(1));
                let error = group_error(group.recv(&x, 2));
                assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[0][..]));
                rank_1_has_its_error.wait();
            }
            _ => _ = rank_1_has_its_error.wait(),
        }
        assert!(start.elapsed() < LONG / 3, "{:?}", start.elapsed());
    });
}

/// A name without an address may get one while rank 0 starts; an invalid one never does.
#[test]
fn names_are_resolved_again() {
    let start = Instant::now();
    let error = group_error(join("name.invalid:1", 1, 2, Duration::from_millis(50)));
    assert_fault(&error, GroupFault::Absent, &[0]);
    assert!(error.problem().contains("cannot be resolved"), "{error}");
    let error = group_error(join("no port", 1, 2, LONG));
    assert_fault(&error, GroupFault::Network, &[]);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
}

#[test]
fn panicking_ranks_leave() {
    let members = succeed(DeviceGroup::local(&cpus(2)));
    let mut members = members.into_iter();
    let (first, second) = (members.next().unwrap(), members.next().unwrap());
    let panicking = thread::spawn(move || {
        let _second = second;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert_fault(&group_error(first.barrier()), GroupFault::Lost, &[1]);
    assert!(panicking.join().is_err());
}

#[test]
fn silent_ranks_are_named() {
    let errors = Barrier::new(3);
    on_both(3, |group| {
        succeed(group.barrier());
        group.set_time_limit(SHORT);
        if group.rank() == 2 {
            errors.wait(); // of the others
        }
        let x = succeed(group.device().upload(&[1u32]));
        let error = group_error(group.all_reduce(&x, &x, ReduceOp::Sum));
        if group.rank() != 2 {
            errors.wait();
        }
        errors.wait(); // of rank 2, which rank 0 has passed on
        assert_fault(&error, GroupFault::Unresponsive, &[2]);
        assert_eq!(
            error.to_string(),
            format!(
                "DeviceGroup::all_reduce: rank {} of 3: rank 2 made no call that matches \
                 all_reduce(sum) of 1 u32 within 3s; help: look for what keeps it busy, or for \
                 a call that it does not make; raise DeviceGroup::set_time_limit if it needs \
                 longer",
                group.rank()
            )
        );
    });
}

#[test]
fn different_calls_are_named() {
    on_both(3, |group| {
        let x = succeed(group.device().upload(&[1u32; 2]));
        let result = match group.rank() {
            1 => group.all_reduce(&x, &x, ReduceOp::Max),
            _ => group.all_reduce(&x, &x, ReduceOp::Sum),
        };
        let error = group_error(result);
        assert_fault(&error, GroupFault::Mismatch, &[1]);
        assert_eq!(GpuError::Group(error.clone()).kind(), ErrorKind::Usage);
        assert_eq!(
            error.to_string(),
            format!(
                "DeviceGroup::all_reduce: rank {} of 3: the ranks make different calls: rank 0 \
                 calls all_reduce(sum) of 2 u32, rank 1 calls all_reduce(max) of 2 u32; help: make \
                 the same calls in the same order on every rank, with the same element type and \
                 length; each send needs a recv of its receiver",
                group.rank()
            )
        );
        assert_eq!(succeed(x.download()), [1; 2], "it is not written");
    });
}

#[test]
fn types_and_lengths_are_compared() {
    on_both(2, |group| {
        let len = 2 + group.rank();
        let x = succeed(group.device().alloc::<u32>(len));
        assert_fault(&group_error(group.broadcast(&x, &x, 0)), GroupFault::Mismatch, &[1]);
    });
    on_both(2, |group| {
        let gpu = group.device();
        let result = match group.rank() {
            0 => group.send(&succeed(gpu.alloc::<u32>(2)), 1),
            _ => group.recv(&succeed(gpu.alloc::<f32>(2)), 0),
        };
        assert_fault(&group_error(result), GroupFault::Mismatch, &[0, 1]);
    });
}

/// Both ranks send first: the fault is found at once, not at the time limit.
#[test]
fn ranks_in_a_deadlock_are_named() {
    on_both(2, |group| {
        let x = succeed(group.device().alloc::<u8>(1));
        let error = group_error(group.send(&x, 1 - group.rank()));
        assert_fault(&error, GroupFault::Mismatch, &[0, 1]);
    });
}

#[test]
fn interrupted_ranks_are_named() {
    let rank_1_has_its_error = Barrier::new(2);
    on_both(2, |group| {
        if group.rank() == 0 {
            rank_1_has_its_error.wait();
            // Over TCP, rank 1 has contributed its call, which then succeeds.
            let error = group_error(group.barrier().and_then(|()| group.barrier()));
            assert_fault(&error, GroupFault::Unresponsive, &[1]);
            assert_eq!(error.problem(), "rank 1 was interrupted by Device::interrupt");
            return;
        }
        let error = thread::scope(|scope| {
            let call = scope.spawn(|| group_error(group.barrier()));
            while !call.is_finished() {
                group.device().interrupt(); // only a wait in progress is interrupted
                thread::sleep(Duration::from_millis(1));
            }
            call.join().unwrap()
        });
        assert_eq!(error.problem(), "rank 1 was interrupted by Device::interrupt");
        rank_1_has_its_error.wait();
    });
}

/// The device of rank 1 fails in its n-th driver call, for each n of a collective.
#[test]
fn ranks_with_failed_devices_are_named() {
    let fails = (0..100).take_while(|calls| fails_in_call(*calls)).count();
    assert!((2..100).contains(&fails), "{fails} calls of the driver");
}

/// Returns whether the collective makes more than `calls` driver calls.
fn fails_in_call(calls: u64) -> bool {
    let plan = FaultPlan::new(Fault::DeviceLost, u64::MAX);
    let members = [cpus(1).remove(0), succeed(open_with_faults("cpu", &plan))];
    let mut groups = succeed(DeviceGroup::local(&members)).into_iter();
    let (first, second) = (groups.next().unwrap(), groups.next().unwrap());
    let reduce = |group: &DeviceGroup, fail: &dyn Fn()| {
        let x = succeed(group.device().alloc::<u32>(4));
        fail();
        group.all_reduce(&x, &x, ReduceOp::Sum).and_then(|()| group.barrier())
    };
    // If rank 1 fails after the exchange, the first call of the other rank succeeds.
    let (result, other) = thread::scope(|scope| {
        let other = scope.spawn(|| reduce(&first, &|| ()));
        (reduce(&second, &|| plan.fail_after(calls)), other.join().unwrap())
    });
    let Err(error) = result else {
        succeed(other);
        return false;
    };
    assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
    assert!(error.to_string().starts_with("DeviceGroup::all_reduce: "), "{error}");
    let error = group_error(other);
    assert_fault(&error, GroupFault::Lost, &[1]);
    assert_eq!(error.problem(), "rank 1 could not read or write its buffers");
    true
}

#[test]
fn ranks_that_never_join_are_named() {
    let start = Instant::now();
    let errors: Vec<GroupError> =
        over_tcp(2, |address, rank| group_error(join(address, rank, 4, SHORT)));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    for (rank, error) in errors.iter().enumerate() {
        assert_fault(error, GroupFault::Absent, &[2, 3]);
        assert_eq!(
            error.to_string(),
            format!(
                "DeviceGroup::join: rank {rank} of 4: ranks 2 and 3 did not join within 3s; \
                 help: see the output of that rank, check that its process was started with the \
                 address and the token of the rendezvous, or raise Rendezvous::time_limit"
            )
        );
    }
}

#[test]
fn absence_of_rank_0_is_named() {
    let address = free_address();
    let error = group_error(join(&address, 1, 2, SHORT));
    assert_fault(&error, GroupFault::Absent, &[0]);
    let text = format!("rank 0 did not open the rendezvous {address} within 3s: ");
    assert!(error.problem().starts_with(&text), "{error}");
    assert!(error.problem().len() > text.len(), "the last failure is stated: {error}");
}

#[test]
fn joining_can_be_interrupted() {
    for rank in [0, 1] {
        let gpu = succeed(Device::open("cpu"));
        let rendezvous = Rendezvous::tcp(free_address()).token(TOKEN);
        let error = thread::scope(|scope| {
            let call = scope.spawn(|| group_error(DeviceGroup::join(&gpu, rendezvous, rank, 2)));
            while !call.is_finished() {
                gpu.interrupt();
                thread::sleep(Duration::from_millis(1));
            }
            call.join().unwrap()
        });
        assert_fault(&error, GroupFault::Unresponsive, &[rank]);
    }
}

#[test]
fn wrong_world_sizes_are_named() {
    let errors = over_tcp(2, |address, rank| group_error(join(address, rank, 2 + rank, LONG)));
    for error in errors {
        assert_fault(&error, GroupFault::Mismatch, &[1]);
        assert_eq!(error.problem(), "rank 1 expects 3 ranks, and rank 0 expects 2");
    }
}

#[test]
fn duplicate_ranks_are_named() {
    let errors = over_tcp(3, |address, rank| group_error(join(address, rank.min(1), 4, LONG)));
    for error in errors {
        assert_fault(&error, GroupFault::Mismatch, &[1]);
        assert_eq!(error.problem(), "two processes are rank 1 of 4");
    }
}

/// Rank 1 learns it at once; rank 0 cannot tell it from a stranger.
#[test]
fn other_tokens_are_rejected() {
    let errors = over_tcp(2, |address, rank| {
        let rendezvous = Rendezvous::tcp(address).time_limit(if rank == 0 { SHORT } else { LONG });
        let rendezvous = rendezvous.token(format!("{TOKEN}{rank}"));
        let start = Instant::now();
        let gpu = succeed(Device::open("cpu"));
        let error = group_error(DeviceGroup::join(&gpu, rendezvous, rank, 2));
        (error, start.elapsed())
    });
    assert_fault(&errors[0].0, GroupFault::Absent, &[1]);
    assert_fault(&errors[1].0, GroupFault::Token, &[0, 1]);
    assert_eq!(errors[1].0.problem(), "rank 0 and rank 1 have different tokens");
    assert!(errors[1].1 < LONG / 2, "{:?}", errors[1].1);
}

#[test]
fn occupied_addresses_are_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let error = group_error(join(&address, 0, 2, SHORT));
    assert_fault(&error, GroupFault::Network, &[]);
    let text = format!("the rendezvous {address} cannot be opened by rank 0: ");
    assert!(error.problem().starts_with(&text), "{error}");
}
