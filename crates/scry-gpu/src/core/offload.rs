//! Runs blocking work of tasks on a thread pool.
//!
//! The pool is shared by the process, with at most one thread per processor; each thread ends when
//! no work is left. A job continues after its future is dropped: a kernel being compiled is
//! still cached.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Builder};

use crate::lifecycle::fork_guard::Process;

type Job = Box<dyn FnOnce() + Send>;

/// Queued jobs, and the number of threads.
struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
    /// The process that owns the threads.
    process: Option<Process>,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), threads: 0, process: None });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a thread once the future is polled, or in the poll itself if no thread can be
/// started.
pub(crate) fn offload<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JobFuture<T> {
    JobFuture { work: Some(Box::new(work)), outcome: Arc::default() }
}

/// The future of a job.
pub(crate) struct JobFuture<T> {
    /// `Some` until the first poll.
    work: Option<Box<dyn FnOnce() -> T + Send>>,
    outcome: Arc<Mutex<Outcome<T>>>,
}

/// The result of a job, or its panic, and the waker of the task.
struct Outcome<T> {
    result: Option<Result<T, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
}

impl<T> Default for Outcome<T> {
    fn default() -> Self {
        Self { result: None, waker: None }
    }
}

impl<T: Send + 'static> Future for JobFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let previous = lock(&self.outcome).waker.replace(cx.waker().clone());
        drop(previous);
        if let Some(work) = self.work.take() {
            let outcome = self.outcome.clone();
            queue_job(Box::new(move || finish(&outcome, work)));
        }
        let result = lock(&self.outcome).result.take();
        match result {
            Some(Ok(value)) => Poll::Ready(value),
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for JobFuture<T> {
    fn drop(&mut self) {
        let waker = lock(&self.outcome).waker.take();
        drop(waker);
    }
}

fn lock<T>(outcome: &Mutex<Outcome<T>>) -> MutexGuard<'_, Outcome<T>> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the work, stores its result and wakes the task.
fn finish<T>(outcome: &Mutex<Outcome<T>>, work: impl FnOnce() -> T) {
    let result = catch_unwind(AssertUnwindSafe(work));
    let mut outcome = lock(outcome);
    outcome.result = Some(result);
    let waker = outcome.waker.take();
    drop(outcome);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Queues a job, and starts a thread if there are fewer threads than processors.
fn queue_job(job: Job) {
    let mut pool = pool();
    if pool.process.is_none_or(Process::has_forked) {
        // After a fork, the threads exist only in the parent. It runs these jobs, so the child
        // neither runs nor drops its copies.
        std::mem::take(&mut pool.jobs).into_iter().for_each(std::mem::forget);
        (pool.threads, pool.process) = (0, Some(Process::current()));
    }
    pool.jobs.push_back(job);
    let max_threads = thread::available_parallelism().map_or(1, |cores| cores.get());
    if pool.threads >= max_threads {
        return;
    }
    pool.threads += 1;
    drop(pool);
    let started = Builder::new().name("scry-gpu blocking".to_owned()).spawn(run_jobs);
    if started.is_err() {
        run_jobs();
    }
}

/// Runs jobs until none is left.
fn run_jobs() {
    loop {
        let mut pool = pool();
        let Some(job) = pool.jobs.pop_front() else {
            pool.threads -= 1;
            return;
        };
        drop(pool);
        job();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn await_returns_results_and_panics() {
        assert_eq!(pollster::block_on(offload(|| 7)), 7);
        let panics = || pollster::block_on(offload(|| -> u32 { panic!("as intended") }));
        assert!(catch_unwind(panics).is_err());
        // The thread survives the panic.
        assert_eq!(pollster::block_on(offload(|| 8)), 8);
    }

    #[test]
    fn thread_count_is_bounded() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let job = || {
            let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
            thread::sleep(std::time::Duration::from_micros(200));
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            running
        };
        let max_threads = thread::available_parallelism().map_or(1, |cores| cores.get());
        let (mut futures, waker) = (Vec::new(), Waker::noop());
        for _ in 0..100 {
            let mut future = offload(job);
            let polled = Pin::new(&mut future).poll(&mut Context::from_waker(waker));
            futures.push((future, polled));
        }
        for (future, polled) in futures {
            let running = match polled {
                Poll::Ready(running) => running,
                Poll::Pending => pollster::block_on(future),
            };
            assert!(running <= max_threads, "{running} of {max_threads}");
        }
    }

    #[test]
    fn dropped_future_lets_the_job_finish() {
        let (send, receive) = std::sync::mpsc::channel();
        let mut future = offload(move || send.send(5));
        let _ = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
        drop(future);
        assert_eq!(receive.recv().unwrap(), 5);
    }
}
