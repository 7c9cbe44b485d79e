//! Groups of several processes, over TCP.

use std::time::{Duration, Instant};

use scry_gpu::{Device, DeviceGroup, GroupFault};
use scry_test_support::succeed;

use crate::collectives::check_all;
use crate::interleavings::check_rank;
use crate::support::{await_signals, group_error, in_processes, in_processes_with, signal};

fn group() -> DeviceGroup {
    succeed(DeviceGroup::from_env(&succeed(Device::open("cpu"))))
}

#[test]
fn collectives_of_2_processes() {
    let ranks = in_processes("processes::collectives_of_2_processes", 2, || {
        succeed(check_all(&group()));
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

#[test]
fn collectives_of_4_processes() {
    let ranks = in_processes("processes::collectives_of_4_processes", 4, || {
        succeed(check_all(&group()));
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

#[test]
fn collectives_of_8_processes() {
    let ranks = in_processes("processes::collectives_of_8_processes", 8, || {
        let group = group();
        succeed(check_all(&group));
        check_rank(&group, 12, 60);
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

/// One of the ranks demands NCCL, which CPU devices do not have.
#[test]
fn nccl_can_be_demanded() {
    let name = "processes::nccl_can_be_demanded";
    let ranks = in_processes_with(name, 2, &[("SCRY_GROUP", "nccl")], || {
        let error = group_error(DeviceGroup::from_env(&succeed(Device::open("cpu"))));
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[0, 1][..]), "{error}");
        let problem = "SCRY_GROUP is `nccl`, but ranks 0 and 1 have no CUDA device";
        assert_eq!(error.problem(), problem);
        assert!(error.help().contains("nvidia-nccl-cu12"), "{error}");
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

/// Asserts that the others are told within seconds that a rank has ended without leaving.
fn check_death(group: &DeviceGroup, dying: usize) {
    succeed(group.barrier());
    let x = succeed(group.device().alloc::<u8>(1));
    if group.rank() == dying {
        // As rank 0, it still has to pass the end of the barrier on to the others.
        if dying == 0 {
            (1..group.world_size()).for_each(|rank| succeed(group.recv(&x, rank)));
        }
        // No destructor runs: the same as a crash.
        std::process::abort();
    }
    let start = Instant::now();
    if dying == 0 {
        // It may end before it has passed the end of this call on.
        let _ = group.send(&x, 0);
    }
    let error = group_error(group.barrier());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[dying][..]), "{error}");
    let text = format!("the connection to rank {dying} was closed");
    assert_eq!(error.problem(), text);
    assert_eq!(group_error(group.barrier()).problem(), text, "it stays so");
}

#[test]
fn dead_processes_are_named() {
    let ranks = in_processes("processes::dead_processes_are_named", 3, || {
        check_death(&group(), 2);
    });
    ranks[..2].iter().for_each(|rank| rank.assert_done());
    assert!(!ranks[2].status.unwrap().success());
}

#[test]
fn death_of_rank_0_is_noticed() {
    let ranks = in_processes("processes::death_of_rank_0_is_noticed", 3, || {
        check_death(&group(), 0);
    });
    ranks[1..].iter().for_each(|rank| rank.assert_done());
    assert!(!ranks[0].status.unwrap().success());
}

/// A process that does nothing, for longer than the others wait. Rank 0 stays until rank 1 has been
/// told.
#[test]
fn hanging_processes_are_named() {
    let ranks = in_processes("processes::hanging_processes_are_named", 3, || {
        let group = group();
        succeed(group.barrier());
        group.set_time_limit(Duration::from_secs(3));
        if group.rank() == 1 {
            await_signals(&[0, 2]);
        }
        let start = Instant::now();
        let error = group_error(group.barrier());
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &[1][..]), "{error}");
        assert_eq!(error.problem(), "rank 1 made no call that matches barrier within 3s");
        signal(group.rank());
        if group.rank() == 0 {
            await_signals(&[1]);
        }
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}
