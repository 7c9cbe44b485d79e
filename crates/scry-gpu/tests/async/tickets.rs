//! Tests of tickets as futures: completion, dropping, time limits, interrupts, the watcher's
//! lifetime.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use scry_gpu::kir::Builder;
use scry_gpu::testing::Fault;
use scry_gpu::{Device, GpuError, Kernel, Ticket};
use scry_test_support::devices;

use crate::harness::{
    CountingWaker, NEVER, SHORT, current_thread, fill, join_all, lock_process, multi_thread,
    on_every_executor, open_hanging, poll_and_drop, poll_once,
};

/// Compiles a kernel that executes 20000 dependent operations, so that awaits of it are often
/// pending, and increments `x[1]`.
fn compile_slow(gpu: &Device) -> Kernel {
    gpu.compile(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(1) fn slow() {
             var value = x[0];
             for (var i = 0u; i < 20000u; i++) { value = value * 1664525u + 1013904223u; }
             x[0] = value;
             x[1] += 1u;
         }",
    )
    .unwrap()
}

fn submit(gpu: &Device, kernel: &Kernel, x: &scry_gpu::Buffer<u32>) -> Ticket {
    gpu.batch().run(kernel, &[x], 1).unwrap().submit_async().unwrap()
}

#[test]
fn tickets_complete_under_every_executor() {
    let _lock = lock_process();
    for gpu in devices() {
        let kernel = compile_slow(&gpu);
        on_every_executor(|| {
            let (gpu, kernel) = (gpu.clone(), kernel.clone());
            async move {
                let x = gpu.alloc::<u32>(2).unwrap();
                for _ in 0..3 {
                    submit(&gpu, &kernel, &x).await.unwrap();
                }
                let ticket = submit(&gpu, &kernel, &x);
                (&ticket).await.unwrap();
                assert!(ticket.is_ready().unwrap());
                ticket.await.unwrap();
                gpu.batch().submit_async().unwrap().await.unwrap();
                x.fill(9).unwrap();
                gpu.wait_async().await.unwrap();
                assert_eq!(x.download().unwrap(), [9, 9]);
            }
        });
    }
}

#[test]
fn ten_thousand_futures_complete() {
    let _lock = lock_process();
    for gpu in devices() {
        let kernel = compile_slow(&gpu);
        let x = gpu.alloc::<u32>(2).unwrap();
        let tickets: Vec<_> = (0..50).map(|_| Arc::new(submit(&gpu, &kernel, &x))).collect();
        let ticket_of = |task: usize| tickets[task % tickets.len()].clone();
        for runtime in [current_thread(), multi_thread()] {
            runtime.block_on(async {
                let tasks: Vec<_> = (0..10_000)
                    .map(ticket_of)
                    .map(|ticket| tokio::spawn(async move { (&*ticket).await }))
                    .collect();
                for task in tasks {
                    task.await.unwrap().unwrap();
                }
            });
        }
        let tasks: Vec<_> = (0..10_000).map(ticket_of).collect();
        smol::block_on(async {
            for task in tasks.into_iter().map(|it| smol::spawn(async move { (&*it).await })) {
                task.await.unwrap();
            }
        });
        let tickets: Vec<_> = (0..50).map(|_| submit(&gpu, &kernel, &x)).collect();
        let all = (0..10_000).map(|task| (&tickets[task % 50]).into_future());
        assert!(pollster::block_on(join_all(all)).iter().all(Result::is_ok));
        assert_eq!(x.download().unwrap()[1], 100);
    }
}

#[test]
fn dropped_future_does_not_cancel_work() {
    let _lock = lock_process();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let ticket = fill(&gpu, &buffer, 2);
    for polls in 0..4 {
        assert!(!poll_and_drop((&ticket).into_future(), polls));
        assert!(!poll_and_drop(gpu.wait_async(), polls));
    }
    // Only the waker of the last poll is called.
    let (first, last) = (Arc::new(CountingWaker::default()), Arc::new(CountingWaker::default()));
    let mut future = pin!((&ticket).into_future());
    for count in [&first, &first, &last] {
        assert!(poll_once(future.as_mut(), count).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1, "its waker was dropped");
    plan.fail_after(NEVER);
    let start = Instant::now();
    while last.0.load(Ordering::SeqCst) == 0 && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((first.0.load(Ordering::SeqCst), last.0.load(Ordering::SeqCst)), (0, 1));
    assert!(poll_once(future.as_mut(), &last).is_ready());
    assert_eq!(buffer.download().unwrap(), [2; 4]);
}

/// All futures but those of tickets, transfers and compilation from WGSL, which have other tests.
#[test]
fn other_futures_may_be_dropped_anytime() {
    let _lock = lock_process();
    let kir = Builder::new("nothing", [8, 1, 1]).finish();
    for gpu in devices() {
        let (kernel, x) = (compile_slow(&gpu), gpu.upload(&[0u32; 2]).unwrap());
        for polls in 0..4 {
            poll_and_drop(Device::auto_async(), polls);
            poll_and_drop(Device::open_async("cpu"), polls);
            poll_and_drop(Device::list_async(), polls);
            poll_and_drop(gpu.compile_ir_async(&kir), polls);
            let mut timed = gpu.batch();
            timed.run(&kernel, &[&x], 1).unwrap();
            poll_and_drop(timed.submit_timed_async(), polls);
            let mut batch = gpu.batch();
            batch.run(&kernel, &[&x], 1).unwrap();
            let elements = batch.download(&x).unwrap();
            drop(batch.submit_async().unwrap());
            poll_and_drop(elements.get_async(), polls);
            poll_and_drop(gpu.ready_async(), polls);
            poll_and_drop(gpu.wait_async(), polls);
        }
        // The timed batch that was never polled was not submitted; all other work was done.
        assert_eq!(x.download().unwrap()[1], 7);
    }
}

#[test]
fn finished_submissions_keep_their_times() {
    const COUNT: usize = 100;
    let _lock = lock_process();
    for gpu in devices() {
        let (kernel, x) = (compile_slow(&gpu), gpu.upload(&[0u32; 2]).unwrap());
        let mut batches: Vec<_> = (0..COUNT).map(|_| gpu.batch()).collect();
        let mut futures = Vec::new();
        let mut finished = 0;
        let waker = Arc::new(CountingWaker::default());
        for batch in &mut batches {
            batch.run(&kernel, &[&x], 1).unwrap().run(&kernel, &[&x], 1).unwrap();
            let mut future = Box::pin(batch.submit_timed_async());
            // Submits the batch; it ends before the times are read.
            match poll_once(future.as_mut(), &waker) {
                Poll::Ready(times) => finished += usize::from(times.unwrap().len() == 2),
                Poll::Pending => futures.push(future),
            }
            gpu.wait().unwrap();
        }
        for times in pollster::block_on(join_all(futures)) {
            finished += usize::from(times.unwrap().len() == 2);
        }
        assert_eq!(finished, COUNT);
    }
}

#[test]
fn executor_timeout_does_not_cancel_work() {
    let _lock = lock_process();
    for runtime in [current_thread(), multi_thread()] {
        let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
        let ticket = fill(&gpu, &buffer, 2);
        runtime.block_on(async {
            let waited = tokio::time::timeout(SHORT, &ticket).await;
            assert!(waited.is_err(), "{waited:?}");
            plan.fail_after(NEVER);
            ticket.await.unwrap();
        });
        assert_eq!(buffer.download().unwrap(), [2; 4]);
    }
}

#[test]
fn time_limit_ends_awaited_work() {
    let _lock = lock_process();
    on_every_executor(|| async {
        let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
        gpu.set_time_limit(Some(SHORT));
        let tickets = [2, 3, 4].map(|value| fill(&gpu, &buffer, value));
        for result in join_all(tickets.iter().map(IntoFuture::into_future)).await {
            let error = result.unwrap_err();
            assert!(matches!(error, GpuError::Timeout(_)), "{error}");
            assert!(error.to_string().starts_with("Ticket::await: work on"), "{error}");
            assert!(error.to_string().contains("the device remains usable"), "{error}");
        }
        plan.fail_after(NEVER);
        fill(&gpu, &buffer, 5).await.unwrap();
        assert_eq!(buffer.download().unwrap(), [5; 4]);
    });
}

#[test]
fn time_limit_can_change_during_await() {
    let _lock = lock_process();
    let (gpu, _plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let ticket = fill(&gpu, &buffer, 2);
    let limited = std::thread::spawn({
        let gpu = gpu.clone();
        move || {
            std::thread::sleep(SHORT);
            gpu.set_time_limit(Some(SHORT));
        }
    });
    let result = pollster::block_on(ticket.into_future());
    assert!(matches!(result, Err(GpuError::Timeout(_))), "{result:?}");
    limited.join().unwrap();
}

#[test]
fn interrupts_reach_every_pending_future() {
    let _lock = lock_process();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let ticket = fill(&gpu, &buffer, 2);
    let interrupting = std::thread::spawn({
        let gpu = gpu.clone();
        move || {
            std::thread::sleep(SHORT);
            gpu.interrupt();
        }
    });
    let all = (0..100).map(|_| (&ticket).into_future());
    for result in pollster::block_on(join_all(all)) {
        assert!(matches!(result, Err(GpuError::Interrupted(_))), "{result:?}");
    }
    interrupting.join().unwrap();
    plan.fail_after(NEVER);
    pollster::block_on(ticket.into_future()).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn watcher_runs_from_await_to_drop() {
    use crate::harness::count_watchers;

    let _lock = lock_process();
    let before = count_watchers();
    let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
    let ticket = fill(&gpu, &buffer, 2);
    assert_eq!(count_watchers(), before, "nothing is awaited");
    let futures: Vec<_> = (0..10).map(|_| Box::pin((&ticket).into_future())).collect();
    for mut future in futures {
        assert!(poll_once(future.as_mut(), &Arc::new(CountingWaker::default())).is_pending());
    }
    std::thread::sleep(SHORT);
    assert_eq!(count_watchers(), before + 1);
    plan.fail_after(NEVER);
    drop((gpu, buffer, ticket));
    assert_eq!(count_watchers(), before);
}

#[test]
fn device_survives_runtime_shutdown() {
    let _lock = lock_process();
    for runtime in [current_thread(), multi_thread()] {
        let (gpu, plan, buffer) = open_hanging(Fault::HangUntilCancelled);
        for value in 0..20 {
            let ticket = fill(&gpu, &buffer, value);
            runtime.spawn(async move { ticket.await });
        }
        runtime.block_on(async { tokio::time::sleep(SHORT).await });
        drop(runtime);
        plan.fail_after(NEVER);
        assert_eq!(buffer.download().unwrap(), [19; 4]);
    }
}

#[test]
fn last_handle_may_be_dropped_by_a_task() {
    let _lock = lock_process();
    let runtime = multi_thread();
    let start = Instant::now();
    for _ in 0..20 {
        let (gpu, _plan, buffer) = open_hanging(Fault::HangUntilCancelled);
        let ticket = fill(&gpu, &buffer, 2);
        runtime.spawn(async move {
            let _ = tokio::time::timeout(Duration::from_millis(2), ticket).await;
            drop((gpu, buffer));
        });
    }
    drop(runtime);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
