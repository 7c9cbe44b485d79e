//! Tests of devices that are lost, or abandoned after the time limit, during an await.

use std::sync::Arc;
use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Device, GpuError};

use crate::harness::{
    NEVER, SHORT, current_thread, fill, join_all, lock_process, multi_thread, on_every_executor,
    open_hanging,
};

const SPIN: &str = "@group(0) @binding(0) var<storage, read_write> flag: array<u32>;
    @compute @workgroup_size(1) fn spin() { loop { if flag[0] == 1u { break; } } }";

/// Opens a CPU device that executes an endless kernel, and that the plan can make lost.
fn open_spinning() -> (Device, Arc<FaultPlan>, scry_gpu::Ticket) {
    let plan = FaultPlan::new(Fault::DeviceLost, NEVER);
    let gpu = open_with_faults("cpu", &plan).unwrap();
    let flag = gpu.alloc::<u32>(1).unwrap();
    let kernel = gpu.compile(SPIN).unwrap();
    let ticket = gpu.batch().run(&kernel, &[&flag], 1).unwrap().submit_async().unwrap();
    (gpu, plan, ticket)
}

#[test]
fn pending_futures_return_the_same_loss() {
    let _lock = lock_process();
    for runtime in [current_thread(), multi_thread()] {
        let (gpu, plan, ticket) = open_spinning();
        let ticket = Arc::new(ticket);
        let results = runtime.block_on(async {
            let tasks: Vec<_> = (0..500)
                .map(|_| ticket.clone())
                .map(|ticket| tokio::spawn(async move { (&*ticket).await }))
                .collect();
            tokio::time::sleep(SHORT).await;
            plan.fail_after(0);
            let mut results = Vec::new();
            for task in tasks {
                results.push(task.await.unwrap());
            }
            results
        });
        let first = results[0].clone().unwrap_err();
        assert!(matches!(first, GpuError::DeviceLost(_)), "{first}");
        assert!(first.to_string().contains("injected at"), "{first}");
        assert!(results.iter().all(|result| result.as_ref() == Err(&first)));
        let error = pollster::block_on(gpu.wait_async()).unwrap_err();
        assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
    }
}

#[test]
fn device_without_cancellation_is_lost() {
    let _lock = lock_process();
    on_every_executor(|| async {
        let (gpu, _plan, buffer) = open_hanging(Fault::Hang);
        gpu.set_time_limit(Some(SHORT));
        let tickets = [1, 2].map(|value| fill(&gpu, &buffer, value));
        let results = join_all(tickets.iter().map(IntoFuture::into_future)).await;
        let timeouts = results.iter().filter(|it| matches!(it, Err(GpuError::Timeout(_)))).count();
        assert!(timeouts >= 1, "{results:?}");
        for error in results.into_iter().map(Result::unwrap_err) {
            assert!(matches!(error, GpuError::Timeout(_) | GpuError::DeviceLost(_)), "{error}");
        }
        let error = gpu.wait_async().await.unwrap_err();
        assert!(matches!(error, GpuError::DeviceLost(_)), "{error}");
    });
}

#[test]
fn loss_in_a_thread_wakes_tasks() {
    let _lock = lock_process();
    let (gpu, plan, ticket) = open_spinning();
    let losing = std::thread::spawn({
        let gpu = gpu.clone();
        move || {
            std::thread::sleep(SHORT);
            plan.fail_after(0);
            // Any driver call detects the loss.
            gpu.alloc::<u32>(1).is_err()
        }
    });
    let runtime = current_thread();
    let result = runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(10), ticket).await.unwrap() });
    assert!(matches!(result, Err(GpuError::DeviceLost(_))), "{result:?}");
    let _ = losing.join().unwrap();
}
