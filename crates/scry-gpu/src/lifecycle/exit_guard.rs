//! Process exit: drivers run their exit handlers while other threads may still call them.
//!
//! The thread that calls `exit`, or returns from `main`, runs the exit handlers of libraries while
//! other threads continue: their calls would reach a partly destroyed driver. Once exit begins,
//! this module therefore rejects new calls and waits for calls in progress. Handlers run in reverse
//! order of registration, so its handler is registered after each opened device, and after NCCL.
//!
//! A forked child has a copy of this state, but none of its parent's threads: it counts its own
//! calls, from zero.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::api::device_selection::SearchMode;
use crate::api::error::{DeviceLostError, GpuError, Result};
use crate::api::info::{BackendKind, DeviceInfo};
use crate::core::clock::Instant;
use crate::core::command::Step;
use crate::core::driver::{
    Adapter, Cancelled, CompileJob, CopyKernel, Driver, FailureReport, GridSource, HostJob,
    KernelId, MemoryId, MemoryKind, NativeJob, RecordingId, RoutineJob, SubmissionIndex, Work,
};
#[cfg(not(target_arch = "wasm32"))]
use crate::core::driver::{Communicator, CommunicatorJob};
use crate::lifecycle::fork_guard::Process;

/// How long exit waits for calls in progress. A wait for the device consists of short calls, and
/// waits within a call end once the process is exiting; compilations and transfers may take longer.
#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has an exit handler"))]
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum duration of a wait in one call.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// The reason of the device loss after process exit began.
pub(crate) const EXITING: &str = "the process is exiting, and its drivers are shutting down";

/// The gate of all calls to drivers with exit handlers.
static GATE: Gate = Gate(AtomicUsize::new(0));

/// The number of calls in progress; the highest bit is set once new calls are rejected.
struct Gate(AtomicUsize);

/// A call in progress, and the process that counts it.
pub(crate) struct Call<'g>(&'g Gate, Process);

impl Gate {
    const CLOSED: usize = 1 << (usize::BITS - 1);

    /// Counts a call until the guard is dropped; `None` if calls are rejected.
    fn enter(&self) -> Option<Call<'_>> {
        // Before the call is counted: later forks must be detected.
        let process = Process::current();
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        let call = Call(self, process);
        (before & Self::CLOSED == 0).then_some(call)
    }

    /// Rejects new calls, and waits for those in progress; false after `timeout`.
    #[cfg_attr(not(any(unix, test)), expect(dead_code, reason = "only Unix has an exit handler"))]
    fn close(&self, timeout: Duration) -> bool {
        self.0.fetch_or(Self::CLOSED, Ordering::AcqRel);
        let start = Instant::now();
        while self.0.load(Ordering::Acquire) != Self::CLOSED {
            if start.elapsed() >= timeout {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Resets the count, for a process in which no call is in progress.
    #[cfg(unix)]
    fn reset(&self) {
        self.0.fetch_and(Self::CLOSED, Ordering::AcqRel);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // A forked child does not count a call that began in its parent.
        if !self.1.has_forked() {
            self.0.0.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Resets the count in a forked child. Async-signal-safe, as required between `fork` and `exec`.
#[cfg(unix)]
pub(crate) fn reset_after_fork() {
    GATE.reset();
}

/// Begins a call; `None` once the process is exiting.
pub(crate) fn begin_call() -> Option<Call<'static>> {
    GATE.enter()
}

/// Returns whether process exit has begun: waits within a call of a driver must end.
#[cfg(any(cuda, vulkan))]
pub(crate) fn is_exiting() -> bool {
    GATE.0.load(Ordering::Relaxed) & Gate::CLOSED != 0
}

/// Opens a device whose driver is not called after process exit has begun. With
/// [`SearchMode::Blocking`] the future is ready at once.
pub(crate) async fn open(adapter: &dyn Adapter, mode: SearchMode) -> Result<Box<dyn Driver>> {
    let info = adapter.info();
    if matches!(info.backend, BackendKind::Cpu | BackendKind::Null) {
        return adapter.open();
    }
    let Some(_call) = begin_call() else { return Err(exiting_error(info)) };
    let inner = ManuallyDrop::new(match mode {
        SearchMode::Blocking => adapter.open()?,
        SearchMode::Awaiting => adapter.open_async().await?,
    });
    register_exit_handler();
    Ok(Box::new(GuardedDriver { inner, gate: &GATE }))
}

fn exiting_error(info: &DeviceInfo) -> GpuError {
    GpuError::DeviceLost(DeviceLostError {
        function: None,
        device: info.name.clone(),
        reason: EXITING.to_owned(),
    })
}

/// Registers the handler that closes the gate. It runs before all handlers registered so far.
#[cfg(unix)]
pub(crate) fn register_exit_handler() {
    use std::ffi::c_int;

    // SAFETY: the declaration matches the C standard.
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> c_int;
    }

    // SAFETY: the handler only accesses a static, so it may run at any time. It is in the same
    // shared object as this call.
    if unsafe { atexit(close) } != 0 {
        log::warn!("process exit is not detected: atexit failed");
    }
}

/// The exit handler.
#[cfg(unix)]
extern "C" fn close() {
    GATE.close(EXIT_TIMEOUT);
}

/// On other systems all other threads have ended before libraries are unloaded.
#[cfg(not(unix))]
pub(crate) fn register_exit_handler() {}

/// A driver with exit handlers, which is not called once the process is exiting.
struct GuardedDriver {
    inner: ManuallyDrop<Box<dyn Driver>>,
    gate: &'static Gate,
}

impl GuardedDriver {
    fn call<R>(&self, work: impl FnOnce(&dyn Driver) -> Result<R>) -> Result<R> {
        match self.gate.enter() {
            Some(_call) => work(&**self.inner),
            None => Err(exiting_error(self.inner.info())),
        }
    }

    /// Calls the driver, or does nothing once the process is exiting.
    fn call_infallible(&self, work: impl FnOnce(&dyn Driver)) {
        if let Some(_call) = self.gate.enter() {
            work(&**self.inner);
        }
    }
}

// Every method must be forwarded: a default method would not call the driver.
#[warn(clippy::missing_trait_methods)]
impl Driver for GuardedDriver {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        self.call(|driver| driver.allocate(kind, size, label))
    }

    fn free(&self, memory: MemoryId) {
        self.call_infallible(|driver| driver.free(memory));
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        self.call(|driver| driver.write(memory, offset, data))
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        self.call(|driver| driver.read(memory, offset, out))
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        self.call(|driver| driver.compile(job))
    }

    fn poll_compiled(&self, kernel: KernelId, waker: &Waker) -> Poll<Result<()>> {
        let mut verdict = Poll::Pending;
        let called = self.call(|driver| {
            verdict = driver.poll_compiled(kernel, waker);
            Ok(())
        });
        match called {
            Ok(()) => verdict,
            Err(exiting) => Poll::Ready(Err(exiting)),
        }
    }

    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        self.call(|driver| driver.compile_native(job))
    }

    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        self.call(|driver| driver.load_routine(job))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn join_communicator(
        &self,
        job: &CommunicatorJob<'_>,
    ) -> Result<(KernelId, Arc<dyn Communicator>)> {
        // Not counted as a call: it may wait for other ranks for a long time.
        match self.gate.enter() {
            Some(call) => drop(call),
            None => return Err(exiting_error(self.inner.info())),
        }
        self.inner.join_communicator(job)
    }

    fn load_host_function(&self, job: &HostJob<'_>) -> Result<KernelId> {
        self.call(|driver| driver.load_host_function(job))
    }

    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        // Does not call the driver's library.
        self.inner.copy_kernel()
    }

    fn indirect(&self) -> GridSource {
        // Does not call the driver's library.
        self.inner.indirect()
    }

    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        self.call(|driver| Ok(driver.report(kernel))).ok().flatten()
    }

    fn free_kernel(&self, kernel: KernelId) {
        self.call_infallible(|driver| driver.free_kernel(kernel));
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        self.call(|driver| driver.record(steps))
    }

    fn free_recording(&self, recording: RecordingId) {
        self.call_infallible(|driver| driver.free_recording(recording));
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        self.call(|driver| driver.submit(work, timed))
    }

    fn can_block(&self) -> bool {
        // Does not call the driver's library.
        self.inner.can_block()
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        let wait = |timeout| self.call(|driver| driver.wait(submission, timeout));
        if timeout <= MAX_WAIT {
            return wait(timeout);
        }
        let start = Instant::now();
        loop {
            let remaining = timeout.saturating_sub(start.elapsed());
            if wait(remaining.min(MAX_WAIT))? {
                return Ok(true);
            }
            if remaining <= MAX_WAIT {
                return Ok(false);
            }
        }
    }

    fn poll(&self, submission: SubmissionIndex) -> Result<bool> {
        self.call(|driver| driver.poll(submission))
    }

    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        self.call(|driver| driver.notify(submission, waker))
    }

    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        self.call(|driver| driver.cancel(submission))
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        self.call(|driver| driver.timings(submission))
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        self.call_infallible(|driver| driver.discard_timings(submission));
    }

    fn free_memory(&self) -> Result<Option<u64>> {
        self.call(|driver| driver.free_memory())
    }

    fn abandon(&self) {
        self.call_infallible(|driver| driver.abandon());
    }
}

impl Drop for GuardedDriver {
    fn drop(&mut self) {
        if let Some(_call) = self.gate.enter() {
            // SAFETY: nothing uses it any more, and it is dropped only here.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::api::device::Device;
    use crate::api::native::NativeInterface;
    use crate::backend::fault::{Fault, FaultDriver, FaultPlan};
    use crate::backend::null::{Log, NullDriver, null_info};

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn closed_gates_reject_calls() {
        let gate = Gate(AtomicUsize::new(0));
        drop((gate.enter().unwrap(), gate.enter().unwrap()));
        assert!(gate.close(Duration::ZERO));
        assert!(gate.enter().is_none() && gate.enter().is_none());
        assert!(gate.close(Duration::ZERO), "rejected calls are not waited for");
    }

    #[test]
    fn closing_waits_with_a_timeout() {
        let gate = Gate(AtomicUsize::new(0));
        let call = gate.enter().unwrap();
        assert!(!gate.close(Duration::from_millis(2)));
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                is_done.store(true, Ordering::Release);
                drop(call);
            });
            assert!(gate.close(LONG) && is_done.load(Ordering::Acquire));
        });
    }

    #[test]
    fn guarded_drivers_load_routines() {
        let driver = NullDriver::new(null_info(), Log::default());
        let guarded = GuardedDriver { inner: ManuallyDrop::new(Box::new(driver)), gate: &GATE };
        let interface = NativeInterface::new([], [1; 3]);
        let routine = |name| RoutineJob { name, library: "cuBLAS", interface: &interface };
        assert!(guarded.load_routine(&routine("cublas_matmul")).is_ok());
        let unknown = guarded.load_routine(&routine("none")).unwrap_err().to_string();
        assert!(unknown.contains("there is no routine `none`"), "{unknown}");
    }

    #[test]
    fn exit_waits_for_dropped_devices() {
        static GATE: Gate = Gate(AtomicUsize::new(0));
        let plan = FaultPlan::new(Fault::Hang, 0);
        let inner = Box::new(NullDriver::new(null_info(), Log::default()));
        let hanging: Box<dyn Driver> = Box::new(FaultDriver::new(inner, &plan));
        let guarded = GuardedDriver { inner: ManuallyDrop::new(hanging), gate: &GATE };
        let gpu = Device::from_driver(Box::new(guarded));
        gpu.alloc::<u32>(4).unwrap().fill(1).unwrap();
        let calls_before = plan.calls();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(gpu));
            while plan.calls() == calls_before {
                std::thread::yield_now();
            }
            // The drop is waiting for the fill, which never ends.
            assert!(GATE.close(EXIT_TIMEOUT), "exit overtakes a drop");
        });
    }

    #[test]
    #[cfg(all(unix, not(miri)))]
    fn forked_children_wait_for_own_calls() {
        let _parents_call = begin_call().unwrap();
        // SAFETY: the child touches atomics, starts a thread and exits without returning.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork failed");
        if child == 0 {
            let childs_call = begin_call();
            let is_done = Arc::new(AtomicBool::new(false));
            let (done, start) = (is_done.clone(), Instant::now());
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                done.store(true, Ordering::Release);
                drop(childs_call);
            });
            close();
            // The parent's call never ends here: waiting for it would take the whole timeout.
            let has_waited_for_child =
                is_done.load(Ordering::Acquire) && start.elapsed() < EXIT_TIMEOUT;
            // SAFETY: exits the process.
            unsafe { libc::_exit(i32::from(!has_waited_for_child)) };
        }
        let mut status = 0;
        // SAFETY: `child` is a child of this process, and `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 0, "the child did not wait for its own call");
    }
}
