//! What waiting costs: the CPU time of executor and watcher.

use std::sync::Arc;
use std::time::{Duration, Instant};

use scry_gpu::testing::Fault;

use crate::harness::{NEVER, alone, current_thread, endless, fill, multi_thread};

/// CPU time of all threads of this process.
#[cfg(unix)]
fn cpu_time() -> Duration {
    // SAFETY: a structure of integers may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }, 0);
    let time = |it: libc::timeval| Duration::new(it.tv_sec as u64, it.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

#[test]
#[cfg(unix)]
fn ten_thousand_pending_futures_cost_no_cpu_time() {
    let _alone = alone();
    for runtime in [current_thread(), multi_thread()] {
        // The driver is polled, as those of GPUs are, and the submissions are never reached.
        let (gpu, plan, buffer) = endless(Fault::Endless);
        let tickets: Vec<_> = (0..100).map(|value| Arc::new(fill(&gpu, &buffer, value))).collect();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..10_000)
                .map(|number| tickets[number % 100].clone())
                .map(|ticket| tokio::spawn(async move { (&*ticket).await }))
                .collect();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (start, before) = (Instant::now(), cpu_time());
            tokio::time::sleep(Duration::from_secs(5)).await;
            let share = (cpu_time() - before).as_secs_f64() / start.elapsed().as_secs_f64();
            println!("CPU time of 10,000 pending futures: {:.2} % of one core", share * 100.0);
            assert!(share <= 0.01, "{share}");
            plan.fail_later(NEVER);
            for task in tasks {
                task.await.unwrap().unwrap();
            }
        });
    }
}
