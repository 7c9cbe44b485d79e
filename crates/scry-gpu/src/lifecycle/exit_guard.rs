//! The end of the process, at which drivers take themselves down while threads may still call them.
//!
//! The thread that calls `exit`, or returns from `main`, runs what libraries registered for that,
//! and others go on meanwhile: a call that comes then finds half of a driver. So once it begins no
//! call gets through any more, and those in progress are waited for. What was registered last
//! runs first: this is registered after each device that was opened.
//!
//! A forked child has a copy of all this, but none of its parent's threads: it counts its own
//! calls, from zero, and waits for them as its parent does for its own.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::api::error::{DeviceLostError, GpuError, Result};
use crate::api::info::{BackendKind, DeviceInfo};
use crate::core::command::Step;
use crate::core::driver::{
    Adapter, CompileJob, Driver, GridSource, KernelId, Meaning, MemoryId, MemoryKind, NativeJob,
    Point, RecordingId, Work,
};
use crate::lifecycle::fork_guard::Process;

/// How long the end waits for calls in progress. Waits are series of short ones.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to say of a device that is used after that.
pub(crate) const ENDING: &str = "the process is ending, and with it the driver";

/// Calls of drivers that may be torn down.
static GATE: Gate = Gate(AtomicUsize::new(0));

/// How many calls are in progress, and in the highest bit whether no more get through.
struct Gate(AtomicUsize);

/// A call in progress, and the process that it is counted in.
pub(crate) struct Call<'g>(&'g Gate, Process);

impl Gate {
    const CLOSED: usize = 1 << (usize::BITS - 1);

    fn enter(&self) -> Option<Call<'_>> {
        // First: from here on forks are noticed.
        let process = Process::current();
        let before = self.0.fetch_add(1, Ordering::AcqRel);
        let call = Call(self, process);
        (before & Self::CLOSED == 0).then_some(call)
    }

    /// Lets no call through any more, and waits for those in progress; false if that took too long.
    fn close(&self, patience: Duration) -> bool {
        self.0.fetch_or(Self::CLOSED, Ordering::AcqRel);
        let start = Instant::now();
        while self.0.load(Ordering::Acquire) != Self::CLOSED {
            if start.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Counts from zero again, for a process in which none of the calls is in progress.
    #[cfg(unix)]
    fn forget_calls(&self) {
        self.0.fetch_and(Self::CLOSED, Ordering::AcqRel);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        // In a child that was forked in the middle of it the call is not counted.
        if !self.1.was_left() {
            self.0.0.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Calls of the parent's threads are none of a forked child's. Does only what is allowed between a
/// `fork` and whatever comes next.
#[cfg(unix)]
pub(crate) fn forked() {
    GATE.forget_calls();
}

/// Begins a call; none once the process is ending.
pub(crate) fn call() -> Option<Call<'static>> {
    GATE.enter()
}

/// Opens a device, whose driver is called as long as the process is not ending.
pub(crate) fn open(adapter: &dyn Adapter) -> Result<Box<dyn Driver>> {
    let info = adapter.info();
    if !matches!(info.backend, BackendKind::Cuda | BackendKind::Vulkan) {
        return adapter.open();
    }
    let Some(_call) = call() else { return Err(ended(info)) };
    let inner = ManuallyDrop::new(adapter.open()?);
    close_at_exit();
    Ok(Box::new(Guarded { inner }))
}

fn ended(info: &DeviceInfo) -> GpuError {
    GpuError::DeviceLost(DeviceLostError {
        function: None,
        device: info.name.clone(),
        reason: ENDING.to_owned(),
    })
}

/// Has the gate closed when the process ends, before what is registered by now.
#[cfg(unix)]
fn close_at_exit() {
    use std::ffi::c_int;

    // SAFETY: the declaration is C's.
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> c_int;
    }

    // SAFETY: the handler may be called at any time, and lies where this function does.
    if unsafe { atexit(close) } != 0 {
        log::warn!("the end of the process is not noticed: atexit failed");
    }
}

/// What the end of the process begins with.
#[cfg(unix)]
extern "C" fn close() {
    GATE.close(PATIENCE);
}

/// Elsewhere other threads are gone before libraries end.
#[cfg(not(unix))]
fn close_at_exit() {}

/// A driver that may be torn down at the end of the process.
struct Guarded {
    inner: ManuallyDrop<Box<dyn Driver>>,
}

impl Guarded {
    fn call<R>(&self, work: impl FnOnce(&dyn Driver) -> Result<R>) -> Result<R> {
        match call() {
            Some(_call) => work(&**self.inner),
            None => Err(ended(self.inner.info())),
        }
    }

    /// What cannot fail is left undone.
    fn tell(&self, work: impl FnOnce(&dyn Driver)) {
        if let Some(_call) = call() {
            work(&**self.inner);
        }
    }
}

impl Driver for Guarded {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        self.call(|driver| driver.allocate(kind, size, label))
    }

    fn free(&self, memory: MemoryId) {
        self.tell(|driver| driver.free(memory));
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

    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        self.call(|driver| driver.compile_native(job))
    }

    fn indirect(&self) -> GridSource {
        // No call to the driver's library.
        self.inner.indirect()
    }

    fn report(&self, kernel: KernelId) -> Option<Arc<Meaning>> {
        self.call(|driver| Ok(driver.report(kernel))).ok().flatten()
    }

    fn release(&self, kernel: KernelId) {
        self.tell(|driver| driver.release(kernel));
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        self.call(|driver| driver.record(steps))
    }

    fn forget(&self, recording: RecordingId) {
        self.tell(|driver| driver.forget(recording));
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<Point> {
        self.call(|driver| driver.submit(work, timed))
    }

    fn wait(&self, point: Point, timeout: Duration) -> Result<bool> {
        self.call(|driver| driver.wait(point, timeout))
    }

    fn cancel(&self, point: Point) -> Result<Option<Point>> {
        self.call(|driver| driver.cancel(point))
    }

    fn timings(&self, point: Point) -> Result<Vec<Duration>> {
        self.call(|driver| driver.timings(point))
    }

    fn free_memory(&self) -> Result<Option<u64>> {
        self.call(|driver| driver.free_memory())
    }

    fn abandon(&self) {
        self.tell(|driver| driver.abandon());
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(_call) = call() {
            // SAFETY: nobody uses it any more, and it is dropped here alone.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn no_call_gets_through_a_closed_gate() {
        let gate = Gate(AtomicUsize::new(0));
        drop((gate.enter().unwrap(), gate.enter().unwrap()));
        assert!(gate.close(Duration::ZERO));
        assert!(gate.enter().is_none() && gate.enter().is_none());
        assert!(gate.close(Duration::ZERO), "who was refused is not waited for");
    }

    #[test]
    fn calls_in_progress_are_waited_for_and_not_for_ever() {
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
    #[cfg(all(unix, not(miri)))]
    fn a_forked_child_waits_for_its_own_calls_alone() {
        let _of_the_parent = call().unwrap();
        // SAFETY: the child touches atomics, starts a thread and ends without returning.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork failed");
        if child == 0 {
            let own = call();
            let is_done = Arc::new(AtomicBool::new(false));
            let (done, start) = (is_done.clone(), Instant::now());
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                done.store(true, Ordering::Release);
                drop(own);
            });
            close();
            // The parent's call, which never ends here, would have cost all of the patience.
            let well = is_done.load(Ordering::Acquire) && start.elapsed() < PATIENCE;
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!well)) };
        }
        let mut status = 0;
        // SAFETY: `child` is a child of this process, and `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        assert_eq!(libc::WEXITSTATUS(status), 0, "its own call was not waited for");
    }
}
