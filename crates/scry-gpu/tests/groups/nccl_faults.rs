//! Faults of groups of CUDA devices, whose collectives NCCL executes: each is an error that names
//! the rank at fault, within the time limit and some seconds, and leaves the devices usable.
//! Skipped as the tests of [`crate::nccl`] are.

use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{
    Buffer, Device, DeviceGroup, GpuError, GroupError, GroupFault, GroupTransport, ReduceOp, Result,
};
use scry_test_support::succeed;

use crate::collectives::check_all;
use crate::nccl::{gpus, is_child, member, on_threads};
use crate::support::{await_signals, group_error, in_processes, in_processes_with, signal};

/// A time limit that passes.
const SHORT: Duration = Duration::from_secs(3);

/// The most time that a fault may need beyond its time limit.
const LATE: Duration = Duration::from_secs(5);

/// Returns the error of a call, or of the wait for its result.
#[track_caller]
fn call_error(called: Result<()>, x: &Buffer<f32>) -> GroupError {
    match called {
        Ok(()) => group_error(x.download()),
        failed => group_error(failed),
    }
}

/// Asserts that the device works, alone.
fn assert_usable(gpu: &Device) {
    let x = succeed(gpu.upload(&[1u32, 2]));
    succeed(gpu.wait());
    assert_eq!(succeed(x.download()), [1, 2]);
}

/// Rank 1 makes no call; rank 0 has submitted its own, and waits for the result.
#[test]
fn silent_ranks_are_named() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let is_over = Barrier::new(2);
    let program = |group: DeviceGroup| {
        let x = succeed(group.device().upload(&[1.0f32; 1000]));
        succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        succeed(x.download());
        group.set_time_limit(SHORT);
        if group.rank() == 0 {
            let start = Instant::now();
            succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
            let error = group_error(x.download());
            let elapsed = start.elapsed();
            assert!(elapsed >= SHORT && elapsed < SHORT + LATE, "{elapsed:?}");
            assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &[1][..]));
            assert_eq!(
                error.to_string(),
                "Buffer::download: rank 0 of 2: rank 1 made no call that matches all_reduce(sum) \
                 of 1000 f32 within 3s; help: look for what keeps it busy, or for a call that it \
                 does not make; raise DeviceGroup::set_time_limit if it needs longer"
            );
        }
        is_over.wait();
        let error = group_error(group.all_reduce(&x, &x, ReduceOp::Sum));
        assert_eq!(error.ranks(), [1], "{error}");
        assert_eq!(group_error(group.barrier()).ranks(), [1]);
        assert_usable(group.device());
    };
    on_threads(succeed(DeviceGroup::local(&gpus)), program);
    // The devices may form a new group.
    succeed(DeviceGroup::on_each(&gpus, |group| {
        let x = group.device().upload(&[1u32])?;
        group.all_reduce(&x, &x, ReduceOp::Sum)?;
        assert_eq!(x.download()?, [2]);
        Ok(())
    }));
}

#[test]
fn leaving_ranks_are_named() {
    let Some(gpus) = gpus(Some(2)) else { return };
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let x = succeed(group.device().upload(&[1.0f32; 1000]));
        succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        if group.rank() == 1 {
            return;
        }
        let start = Instant::now();
        let error = call_error(group.all_reduce(&x, &x, ReduceOp::Sum), &x);
        assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[1][..]), "{error}");
        assert_eq!(error.problem(), "rank 1 has left the group");
        assert_usable(group.device());
    });
}

/// NCCL connects two ranks at their first message: rank 0 waits in that call, which rank 1 does not
/// make, because its driver fails after the calls were compared.
#[test]
fn peers_that_fail_end_first_calls() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let plan = FaultPlan::new(Fault::DriverError, u64::MAX);
    let devices = [gpus[0].clone(), succeed(open_with_faults("cuda:1", &plan))];
    on_threads(succeed(DeviceGroup::local(&devices)), |group| {
        let x = succeed(group.device().upload(&[1.0f32; 1000]));
        succeed(group.device().wait());
        let start = Instant::now();
        if group.rank() == 1 {
            plan.fail_after(0);
            let error = group.send(&x, 0).unwrap_err();
            assert!(error.to_string().contains("injected"), "{error}");
            return;
        }
        let error = call_error(group.recv(&x, 1), &x);
        assert!(start.elapsed() < 2 * LATE, "{:?}", start.elapsed());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[1][..]), "{error}");
        assert_usable(group.device());
    });
}

/// A recording and a batch with calls of a group that has ended.
#[test]
fn recordings_of_ended_groups_fail() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let is_over = Barrier::new(2);
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let gpu = group.device();
        let x = succeed(gpu.upload(&[1.0f32; 1000]));
        let mut batch = gpu.batch();
        let recording = succeed(succeed(batch.all_reduce(&group, &x, &x, ReduceOp::Sum)).record());
        succeed(succeed(recording.replay()).wait());
        group.set_time_limit(SHORT);
        if group.rank() == 0 {
            let _ = succeed(recording.replay());
            let error = group_error(x.download());
            assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &[1][..]));
        }
        is_over.wait();
        let start = Instant::now();
        assert_eq!(group_error(recording.replay().map(drop)).ranks(), [1]);
        let added = batch.all_reduce(&group, &x, &x, ReduceOp::Sum).map(drop);
        assert_eq!(group_error(added).ranks(), [1]);
        assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
        assert_usable(gpu);
        drop(recording);
        assert_usable(gpu);
    });
}

/// Recordings and batches that outlive the group.
#[test]
fn recordings_of_dropped_groups_fail() {
    let Some(gpus) = gpus(Some(2)) else { return };
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let gpu = group.device().clone();
        let x = succeed(gpu.upload(&[1u32; 1000]));
        let (mut recorded, mut batch) = (gpu.batch(), gpu.batch());
        let recording =
            succeed(succeed(recorded.all_reduce(&group, &x, &x, ReduceOp::Sum)).record());
        succeed(succeed(recording.replay()).wait());
        succeed(batch.all_reduce(&group, &x, &x, ReduceOp::Sum));
        let start = Instant::now();
        drop(group);
        assert!(group_error(recording.replay().map(drop)).problem().contains("has left"));
        assert!(group_error(batch.submit()).problem().contains("has left"));
        assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
        assert_eq!(succeed(x.get(0)), 2);
        drop(recording);
        assert_usable(&gpu);
    });
}

/// The device's own time limit, which no kernel of NCCL polls for.
#[test]
fn time_limits_of_devices_end_calls() {
    let Some(gpus) = gpus(Some(2)) else { return };
    let is_over = Barrier::new(2);
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let x = succeed(group.device().upload(&[1.0f32; 1000]));
        succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        succeed(group.device().wait());
        if group.rank() == 0 {
            group.device().set_time_limit(Some(Duration::from_secs(1)));
            succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
            let error = x.download().unwrap_err();
            assert!(matches!(error, GpuError::Timeout(_)), "{error}");
            group.device().set_time_limit(None);
            assert_usable(group.device());
        } else {
            // Its own call does not end, and it learns why.
            thread::sleep(Duration::from_secs(3));
            let start = Instant::now();
            let error = call_error(group.all_reduce(&x, &x, ReduceOp::Sum), &x);
            assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
            assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[0][..]), "{error}");
        }
        is_over.wait();
    });
}

/// The first calls of a kind are compared, and later ones where that is demanded.
#[test]
fn different_calls_are_named() {
    let Some(gpus) = gpus(Some(2)) else { return };
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let x = succeed(group.device().upload(&[1u32; 2]));
        let result = match group.rank() {
            1 => group.all_gather(x.slice(1..).unwrap(), &x),
            _ => group.all_reduce(&x, &x, ReduceOp::Sum),
        };
        let error = group_error(result);
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[1][..]), "{error}");
        assert_usable(group.device());
    });
}

/// Both ranks send first, which NCCL may not notice.
#[test]
fn crossing_messages_are_named() {
    let Some(gpus) = gpus(Some(2)) else { return };
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let x = succeed(group.device().upload(&[1u32; 2]));
        let error = group_error(group.send(&x, 1 - group.rank()));
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[0, 1][..]), "{error}");
    });
}

/// Rank 1 leaves without receiving the second message, which is larger than NCCL's buffers: rank 0
/// learns it long before its time limit, and a first one that was received does not fail.
#[test]
fn messages_to_ranks_that_left_are_never_delivered() {
    let Some(gpus) = gpus(Some(2)) else { return };
    on_threads(succeed(DeviceGroup::local(&gpus)), |group| {
        let x = succeed(group.device().upload(&vec![1.0f32; 1 << 25]));
        if group.rank() == 1 {
            succeed(group.recv(&x, 0));
            return;
        }
        succeed(group.send(&x, 1));
        succeed(group.device().wait());
        let start = Instant::now();
        let error = group_error(group.send(&x, 1).and_then(|()| group.device().wait()));
        assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[1][..]), "{error}");
        assert_usable(group.device());
    });
}

/// Calls of the same kind as earlier ones, with all compared.
#[test]
fn checked_calls_are_all_compared() {
    let name = "nccl_faults::checked_calls_are_all_compared";
    if !is_child() && gpus(Some(2)).is_none() {
        return;
    }
    let ranks = in_processes_with(name, 2, &[("SCRY_GROUP_CHECK", "1")], || {
        let group = member();
        let x = succeed(group.device().upload(&[1u32; 1000]));
        for _ in 0..3 {
            succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        }
        let op = if group.rank() == 1 { ReduceOp::Max } else { ReduceOp::Sum };
        let error = group_error(group.all_reduce(&x, &x, op));
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Mismatch, &[1][..]), "{error}");
        assert_usable(group.device());
        signal(group.rank());
        await_signals(&[0, 1]);
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

#[test]
fn host_memory_can_be_demanded() {
    let name = "nccl_faults::host_memory_can_be_demanded";
    if !is_child() && gpus(Some(2)).is_none() {
        return;
    }
    let ranks = in_processes_with(name, 2, &[("SCRY_GROUP", "host")], || {
        let membership = succeed(scry_gpu::Membership::from_env());
        let gpu = succeed(Device::open(&format!("cuda:{}", membership.local_rank())));
        let group = succeed(membership.join(&gpu));
        assert_eq!(group.transport(), GroupTransport::HostMemory);
        assert_eq!(group.transport_reason(), "SCRY_GROUP is `host` on ranks 0 and 1");
        succeed(check_all(&group));
    });
    ranks.iter().for_each(|rank| rank.assert_done());
}

/// A rank that ends without leaving, as in a crash, while the others' devices wait for it.
fn check_death(group: &DeviceGroup, dying: usize) {
    let x = succeed(group.device().upload(&[1.0f32; 1000]));
    succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
    succeed(x.download());
    succeed(group.barrier());
    if group.rank() == dying {
        if dying == 0 {
            // It still has to pass the end of the barrier on to the others.
            await_signals(&[1]);
        }
        std::process::abort();
    }
    signal(group.rank());
    let start = Instant::now();
    succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
    let error = group_error(x.download());
    assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
    assert_eq!((error.fault(), error.ranks()), (GroupFault::Lost, &[dying][..]), "{error}");
    assert_eq!(error.problem(), format!("the connection to rank {dying} was closed"));
    assert_usable(group.device());
}

#[test]
fn dead_processes_are_named() {
    if !is_child() && gpus(Some(2)).is_none() {
        return;
    }
    let ranks =
        in_processes("nccl_faults::dead_processes_are_named", 2, || check_death(&member(), 1));
    ranks[0].assert_done();
    assert!(!ranks[1].status.unwrap().success());
}

#[test]
fn death_of_rank_0_is_noticed() {
    if !is_child() && gpus(Some(2)).is_none() {
        return;
    }
    let ranks =
        in_processes("nccl_faults::death_of_rank_0_is_noticed", 2, || check_death(&member(), 0));
    ranks[1].assert_done();
    assert!(!ranks[0].status.unwrap().success());
}

/// A process that the system has stopped.
#[test]
fn hanging_processes_are_named() {
    if !is_child() && gpus(Some(2)).is_none() {
        return;
    }
    let ranks = in_processes("nccl_faults::hanging_processes_are_named", 2, || {
        let group = member();
        let x = succeed(group.device().upload(&[1.0f32; 1000]));
        succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        succeed(x.download());
        succeed(group.barrier());
        group.set_time_limit(SHORT);
        if group.rank() == 1 {
            signal(1);
            let own = std::process::id().to_string();
            let stopped = Command::new("kill").args(["-STOP", &own]).status().unwrap();
            assert!(stopped.success());
            return;
        }
        await_signals(&[1]);
        thread::sleep(Duration::from_millis(500));
        let start = Instant::now();
        succeed(group.all_reduce(&x, &x, ReduceOp::Sum));
        let error = group_error(x.download());
        assert!(start.elapsed() < SHORT + LATE, "{:?}", start.elapsed());
        assert_eq!((error.fault(), error.ranks()), (GroupFault::Unresponsive, &[1][..]), "{error}");
        assert_usable(group.device());
    });
    ranks[0].assert_done();
    assert!(ranks[1].status.is_none(), "it was stopped, and killed at the end");
}
