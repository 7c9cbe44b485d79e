//! Tests of cancellation, with kernels that do not terminate.

use std::time::Duration;

use scry_ir::kir::{Access, Barrier, BinaryOp, Builder, Kir, Type};

use super::support::{BuilderExt, TestLaunch, bytes};
use crate::{CancelToken, Cancelled, Machine};

/// Returns a kernel that counts even numbers until the count is 1. With `divergent`, all
/// invocations of the launch but three leave the loop.
fn endless(barrier: bool, divergent: bool) -> Kir {
    let mut b = Builder::new("endless", [64, 1, 1]);
    b.buffer(Access::ReadWrite);
    let number = b.global_index();
    let count = b.var(Type::U32);
    b.loop_(|b, label| {
        let iteration = b.get(count);
        let two = b.u32(2);
        let next = b.add(iteration, two);
        b.set(count, next);
        if barrier {
            b.barrier(Barrier::Workgroup);
        }
        let odd = b.compare(BinaryOp::Eq, next, 1);
        b.if_then(odd, |b| b.break_to(label));
        if divergent {
            let leaves = b.compare(BinaryOp::Ge, number, 3);
            b.if_then(leaves, |b| b.break_to(label));
        }
    });
    let iterations = b.get(count);
    b.store_word(0, number, iterations);
    b.finish()
}

#[test]
fn cancellation_ends_infinite_kernels() {
    for (barrier, divergent) in [(false, false), (true, false), (false, true)] {
        let kir = endless(barrier, divergent);
        for threads in [1, 2] {
            let machine = Machine::new(threads);
            let stop = CancelToken::default();
            let launch = TestLaunch::new([5, 1, 1], &[bytes(&vec![1; 5 * 64])]);
            let out = launch.with_launch(&kir, |launch| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        std::thread::sleep(Duration::from_millis(5));
                        stop.request();
                    });
                    // SAFETY: `with_launch` keeps the memory alive, and nothing else accesses it.
                    assert_eq!(unsafe { machine.run(launch, &stop) }, Err(Cancelled));
                });
                // The machine runs a later launch, which has a token of its own.
                let later = TestLaunch::new([1, 1, 1], &[bytes(&[0; 64])]);
                later.run(&finite(), &machine);
            });
            assert_eq!(out[0][..12], bytes(&[1, 1, 1])[..], "the first lanes never store");
        }
    }
}

/// Returns a kernel that terminates.
fn finite() -> Kir {
    let mut b = Builder::new("finite", [64, 1, 1]);
    b.buffer(Access::ReadWrite);
    let number = b.global_index();
    b.store_word(0, number, number);
    b.finish()
}

#[test]
fn launch_cancelled_before_start_never_runs() {
    let stop = CancelToken::default();
    stop.request();
    let launch = TestLaunch::new([100, 1, 1], &[bytes(&[7; 64])]);
    let out = launch.with_launch(&finite(), |launch| {
        // SAFETY: `with_launch` keeps the memory alive, and nothing else accesses it.
        assert_eq!(unsafe { Machine::new(1).run(launch, &stop) }, Err(Cancelled));
    });
    assert_eq!(out[0], bytes(&[7; 64]));
}
