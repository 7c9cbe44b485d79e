//! Tests of the CPU time of pending futures: executor and watcher must be idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scry_gpu::testing::Fault;
use scry_gpu::{Device, DeviceKind, Ticket};
use scry_test_support::devices;
use tokio::runtime::Runtime;

use crate::harness::{NEVER, current_thread, fill, lock_process, multi_thread, open_hanging};

/// Returns the CPU time of all threads of this process.
#[cfg(unix)]
fn cpu_time() -> Duration {
    // SAFETY: zeros are valid for a structure of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }, 0);
    let time = |it: libc::timeval| Duration::new(it.tv_sec as u64, it.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Maximum CPU time of pending futures, as a fraction of one core. Unoptimised, each poll of the
/// watcher takes several times as long, and on a busy machine still longer.
const MAX_SHARE: f64 = if cfg!(debug_assertions) { 0.03 } else { 0.01 };

/// Number of tickets that 10,000 tasks await.
const TICKETS: usize = 100;

/// Has 10,000 tasks await tickets for 5 seconds; returns the CPU time of all threads in that time,
/// as a fraction of one core. Then calls `finish`, after which the work must terminate.
#[cfg(unix)]
fn cpu_share_while_pending(
    runtime: &Runtime,
    tickets: Vec<Arc<Ticket>>,
    finish: impl FnOnce(),
) -> f64 {
    runtime.block_on(async {
        let tasks: Vec<_> = (0..10_000)
            .map(|number| tickets[number % tickets.len()].clone())
            .map(|ticket| tokio::spawn(async move { (&*ticket).await }))
            .collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (start, before) = (Instant::now(), cpu_time());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let share = (cpu_time() - before).as_secs_f64() / start.elapsed().as_secs_f64();
        assert!(tickets.iter().all(|ticket| ticket.is_ready() == Ok(false)), "nothing is pending");
        finish();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        share
    })
}

#[test]
#[cfg(unix)]
fn pending_futures_cost_no_cpu_time() {
    let _lock = lock_process();
    for runtime in [current_thread(), multi_thread()] {
        // The watcher polls this driver, as it polls those of GPUs; the submissions do not
        // complete.
        let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
        let tickets = (0..TICKETS).map(|value| Arc::new(fill(&gpu, &buffer, value as u32)));
        let share = cpu_share_while_pending(&runtime, tickets.collect(), || plan.fail_after(NEVER));
        println!("CPU time of 10,000 pending futures: {:.2} % of one core", share * 100.0);
        assert!(share <= MAX_SHARE, "{share}");
    }
}

/// A chain of dependent operations in one invocation.
const CHAIN: &str = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(1) fn chain() {
        var value = x[0];
        for (var i = 0u; i < x[1]; i++) {
            value ^= value << 13u;
            value ^= value >> 17u;
            value ^= value << 5u;
        }
        x[0] = value;
    }";

/// Returns the number of iterations of [`CHAIN`] that need 8 seconds on this device.
#[cfg(unix)]
fn iterations_for_8_seconds(gpu: &Device) -> u32 {
    const FEW: u32 = 1 << 20;
    let (chain, x) = (gpu.compile(CHAIN).unwrap(), gpu.upload(&[1, FEW]).unwrap());
    gpu.batch().run(&chain, &[&x], 1).unwrap().submit().unwrap();
    let times = gpu.batch().run(&chain, &[&x], 1).unwrap().submit_timed().unwrap();
    let iterations = f64::from(FEW) * 8.0 / times[0].as_secs_f64();
    assert!(iterations < f64::from(u32::MAX), "{times:?}");
    iterations as u32
}

#[test]
#[cfg(unix)]
fn busy_gpu_costs_no_cpu_time() {
    let _lock = lock_process();
    for gpu in devices() {
        if gpu.info().kind == DeviceKind::Software {
            println!("skipped {}: its kernels run on the CPU", gpu.info().name);
            continue;
        }
        for runtime in [current_thread(), multi_thread()] {
            let chain = gpu.compile(CHAIN).unwrap();
            let x = gpu.upload(&[1, iterations_for_8_seconds(&gpu)]).unwrap();
            gpu.wait().unwrap();
            gpu.run(&chain, &[&x], 1).unwrap();
            let other = gpu.alloc::<u32>(4).unwrap();
            let tickets =
                (0..TICKETS).map(|value| Arc::new(fill(&gpu, &other, value as u32))).collect();
            let share = cpu_share_while_pending(&runtime, tickets, || ());
            println!(
                "CPU time of 10,000 futures on {}: {:.2} % of one core",
                gpu.info(),
                share * 100.0
            );
            assert!(share <= MAX_SHARE, "{share}");
            assert_ne!(x.download().unwrap()[0], 1);
        }
    }
}
