//! Tests of launches on several threads, with closures instead of kernels.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::{Code, Memory};

/// Launches `total` workgroups of `cost` nanoseconds each, which call `run`.
fn launch(
    machine: &Machine,
    (total, cost): (u64, Option<u64>),
    stop: &CancelToken,
    run: Run<'_>,
) -> Result<(), Cancelled> {
    machine.run_on_threads(&Work { total, unit: 1, cost, stop, run })
}

#[test]
fn every_workgroup_runs_exactly_once() {
    for threads in 1..=4 {
        let machine = Machine::new(threads);
        assert_eq!(machine.threads(), threads);
        for cost in [None, Some(1), Some(1_000), Some(10_000_000)] {
            for total in [0, 1, 2, 3, 64, 10_000] {
                let counts: Vec<_> = (0..total).map(|_| AtomicU64::new(0)).collect();
                let run = |groups: Range<u64>, _: &mut _| {
                    groups.for_each(|group| {
                        counts[group as usize].fetch_add(1, Relaxed);
                    });
                    Ok(())
                };
                assert_eq!(launch(&machine, (total, cost), &CancelToken::default(), &run), Ok(()));
                let once = counts.iter().all(|count| count.load(Relaxed) == 1);
                assert!(once, "{threads} threads, {cost:?}, {total} workgroups");
            }
        }
    }
}

#[test]
fn small_launches_run_on_calling_thread() {
    let machine = Machine::new(4);
    let caller = thread::current().id();
    let run = |_, _: &mut _| {
        assert_eq!(thread::current().id(), caller);
        Ok(())
    };
    for work in [(1, None), (100, Some(100)), (1, Some(u64::MAX))] {
        assert_eq!(launch(&machine, work, &CancelToken::default(), &run), Ok(()));
    }
}

#[test]
fn large_launches_use_several_threads() {
    let machine = Machine::new(3);
    let meeting = std::sync::Barrier::new(3);
    // Returns only if three threads execute it at the same time.
    let run = |_, _: &mut _| {
        meeting.wait();
        Ok(())
    };
    for cost in [None, Some(1_000_000)] {
        assert_eq!(launch(&machine, (3, cost), &CancelToken::default(), &run), Ok(()));
    }
}

#[test]
fn cancellation_ends_a_huge_launch() {
    let machine = Machine::new(3);
    let stop = CancelToken::default();
    let done = AtomicU64::new(0);
    let run = |_, _: &mut _| {
        if done.fetch_add(1, Relaxed) == 5 {
            stop.request();
        }
        Ok(())
    };
    assert_eq!(launch(&machine, (u64::MAX, None), &stop, &run), Err(Cancelled));
    assert_eq!(launch(&machine, (u64::MAX, Some(1)), &stop, &run), Err(Cancelled));
    let later = stop.at(2);
    assert_eq!(launch(&machine, (10, None), &later, &run), Ok(()));
}

#[test]
fn cancelled_workgroup_ends_launch() {
    let machine = Machine::new(2);
    let run = |groups: Range<u64>, _: &mut _| match groups.contains(&1_000) {
        true => Err(Cancelled),
        false => Ok(()),
    };
    assert_eq!(launch(&machine, (u64::MAX, None), &CancelToken::default(), &run), Err(Cancelled));
}

#[test]
fn late_cancellation_has_no_effect() {
    let machine = Machine::new(1);
    let stop = CancelToken::default();
    let run = |_, _: &mut _| {
        stop.request();
        Ok(())
    };
    assert_eq!(launch(&machine, (1, None), &stop, &run), Ok(()));
}

#[test]
fn machine_survives_a_panicking_launch() {
    let machine = Machine::new(3);
    for round in 0..20u64 {
        let run = |groups: Range<u64>, _: &mut _| {
            assert!(!groups.contains(&(100 * round)), "panic of a workgroup");
            Ok(())
        };
        let run_launch = || launch(&machine, (u64::MAX, None), &CancelToken::default(), &run);
        let panic = catch_unwind(AssertUnwindSafe(run_launch)).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"panic of a workgroup"));
        assert_eq!(
            launch(&machine, (9, None), &CancelToken::default(), &|_, _: &mut _| Ok(())),
            Ok(())
        );
    }
}

#[test]
fn concurrent_launches_all_complete() {
    let machine = Machine::new(3);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for total in 0..200 {
                    let sum = AtomicU64::new(0);
                    let run = |groups: Range<u64>, _: &mut _| {
                        sum.fetch_add(groups.sum(), Relaxed);
                        Ok(())
                    };
                    assert_eq!(
                        launch(&machine, (total, None), &CancelToken::default(), &run),
                        Ok(())
                    );
                    assert_eq!(sum.into_inner(), total * total.saturating_sub(1) / 2);
                }
            });
        }
    });
}

#[test]
fn fill_and_copy_cover_any_size() {
    let machine = Machine::new(3);
    for size in [0, 4, CHUNK_BYTES - 4, CHUNK_BYTES, CHUNK_BYTES + 4, 5 * CHUNK_BYTES + 12] {
        let (a, b) = (Memory::new(size).unwrap(), Memory::new(size).unwrap());
        let mut out = vec![0; size];
        // SAFETY: both are alive, and the test is their only user.
        unsafe {
            machine.fill(a.whole(), 0x0403_0201);
            machine.copy(a.whole(), b.whole());
            b.whole().read(&mut out);
        }
        let expected = 0x0403_0201u32.to_ne_bytes();
        assert!(out.chunks(4).all(|word| word == expected), "{size} bytes");
    }
}

#[test]
fn workgroup_count_overflows_to_none() {
    let code = &Code::compile(&empty_kernel()).unwrap();
    let count = |groups| Launch { code, bindings: &[], groups, immediates: &[] }.workgroups();
    assert_eq!(count([3, 4, 5]), Some(60));
    assert_eq!(count([u32::MAX, u32::MAX, 1]), Some(u64::from(u32::MAX).pow(2)));
    assert_eq!(count([u32::MAX, u32::MAX, 0]), Some(0));
    assert_eq!(count([u32::MAX, u32::MAX, 2]), None);
}

#[test]
#[should_panic(expected = "number of bindings")]
fn bindings_must_match_the_buffers() {
    let code = &Code::compile(&empty_kernel()).unwrap();
    let memory = Memory::new(64).unwrap();
    let launch = Launch { code, bindings: &[memory.whole()], groups: [1; 3], immediates: &[] };
    // SAFETY: the memory is alive, and nothing else accesses it.
    let _ = unsafe { Machine::new(1).run(&launch, &CancelToken::default()) };
}

/// A kernel that does nothing.
fn empty_kernel() -> scry_ir::kir::Kir {
    scry_ir::kir::Kir {
        name: "empty".to_owned(),
        workgroup_size: [1, 1, 1],
        buffers: Vec::new(),
        immediates: 0,
        workgroup: Vec::new(),
        locals: Vec::new(),
        vars: Vec::new(),
        values: Vec::new(),
        body: Default::default(),
        labels: 1,
        storage_barriers: false,
        source: Default::default(),
    }
}
