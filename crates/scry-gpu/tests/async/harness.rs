//! Executors, devices whose work does not terminate, and manual polling of futures.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use scry_gpu::testing::{Fault, FaultPlan, open_with_faults};
use scry_gpu::{Buffer, Device, Ticket};
use tokio::runtime::{Builder, Runtime};

/// The number of driver calls before a fault that is not to occur: more than any test makes.
pub const NEVER: u64 = 1 << 40;

/// Long enough for a future to become pending, and for its watcher to start.
pub const SHORT: Duration = Duration::from_millis(30);

/// Prevents other tests from running until the result is dropped: some tests count the threads of
/// the process, or its CPU time.
pub fn lock_process() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

pub fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

/// Runs a future under each executor, as a task where the executor has tasks.
pub fn on_every_executor<F>(start: impl Fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    pollster::block_on(start());
    for runtime in [current_thread(), multi_thread()] {
        runtime.block_on(async { tokio::spawn(start()).await.unwrap() });
    }
    smol::block_on(smol::spawn(start()));
}

/// Awaits all futures; returns their results in order.
pub async fn join_all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.into_iter().map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(move |cx| {
        for (future, result) in pending.iter_mut().filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                *result = Some(value);
            }
        }
        match pending.iter().all(|(_, result)| result.is_some()) {
            true => Poll::Ready(pending.drain(..).filter_map(|(_, result)| result).collect()),
            false => Poll::Pending,
        }
    })
    .await
}

/// Opens a device whose work does not terminate until the plan is changed, and allocates a buffer
/// on it.
pub fn open_hanging(fault: Fault) -> (Device, Arc<FaultPlan>, Buffer<u32>) {
    let plan = FaultPlan::new(fault, NEVER);
    let gpu = open_with_faults("null", &plan).unwrap();
    let buffer = gpu.upload(&[1u32; 4]).unwrap();
    gpu.wait().unwrap();
    plan.fail_after(0);
    (gpu, plan, buffer)
}

/// Submits a fill.
pub fn fill(gpu: &Device, buffer: &Buffer<u32>, value: u32) -> Ticket {
    gpu.batch().fill(buffer, value).unwrap().submit_async().unwrap()
}

/// A waker that counts its calls.
#[derive(Default)]
pub struct CountingWaker(pub AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Polls a future once.
pub fn poll_once<F: Future>(future: Pin<&mut F>, waker: &Arc<CountingWaker>) -> Poll<F::Output> {
    let waker = Waker::from(waker.clone());
    future.poll(&mut Context::from_waker(&waker))
}

/// Polls a future up to `polls` times and drops it; returns whether it completed.
pub fn poll_and_drop(future: impl Future, polls: usize) -> bool {
    let mut future = pin!(future);
    let waker = Arc::new(CountingWaker::default());
    (0..polls).any(|_| poll_once(future.as_mut(), &waker).is_ready())
}

/// Returns the number of watcher threads of this process. Linux truncates their names.
#[cfg(target_os = "linux")]
pub fn count_watchers() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("scry-gpu watche")).count()
}
