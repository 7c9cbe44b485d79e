//! Fault injection for tests: a driver that wraps another one and makes its calls fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::api::error::{
    DRIVER_FAILED, DeviceLostError, DriverError, GpuError, OutOfMemoryError, Result,
};
use crate::api::info::{DeviceInfo, Limits};
use crate::core::command::Step;
use crate::core::driver::{
    Cancelled, CompileJob, CopyKernel, Driver, FailureReport, GridSource, HostJob, KernelId,
    MemoryId, MemoryKind, NativeJob, RecordingId, RoutineJob, SubmissionIndex, Work,
};
#[cfg(not(target_arch = "wasm32"))]
use crate::core::driver::{Communicator, CommunicatorJob};

/// The kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails for lack of memory.
    OutOfMemory,
    /// The call fails with a driver error.
    DriverError,
    /// The call panics.
    Panic,
    /// The device is lost: this call and all later ones that are counted fail.
    DeviceLost,
    /// From this call on, every wait times out, and cancellation fails.
    Hang,
    /// From this call on, every wait times out until the submission is cancelled, which succeeds.
    HangUntilCancelled,
    /// No thread may block, as in a browser: blocking waits panic, and a submission completes when
    /// a future awaits it.
    CannotBlock,
}

/// Determines which driver call fails, and how. Counts the calls.
#[derive(Debug)]
pub struct FaultPlan {
    fault: Fault,
    /// The index of the failing call, counted from 0.
    failing_call: AtomicU64,
    calls: AtomicU64,
    lost: AtomicBool,
    /// The last submission that was cancelled; with [`Fault::CannotBlock`], also the last one that
    /// a future awaited.
    last_ended: AtomicU64,
}

impl FaultPlan {
    /// Creates a plan in which the call with index `failing_call`, counted from 0, fails with
    /// `fault`. Counted are allocations, host accesses, compilations, recordings, submissions,
    /// waits, polls, and queries of times and free memory.
    #[must_use]
    pub fn new(fault: Fault, failing_call: u64) -> Arc<Self> {
        Arc::new(Self {
            fault,
            failing_call: AtomicU64::new(failing_call),
            calls: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            last_ended: AtomicU64::new(0),
        })
    }

    /// Creates a plan with [`Fault::CannotBlock`], which applies to all calls.
    #[must_use]
    pub fn cannot_block() -> Arc<Self> {
        Self::new(Fault::CannotBlock, u64::MAX)
    }

    /// Makes a later call fail, after `calls` more calls that succeed.
    pub fn fail_after(&self, calls: u64) {
        self.failing_call.store(self.calls() + calls, Ordering::Relaxed);
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns whether a wait for `submission` times out.
    fn hangs(&self, submission: SubmissionIndex) -> bool {
        let has_ended = || self.last_ended.load(Ordering::Relaxed) >= submission.0;
        let hangs = match self.fault {
            Fault::Hang => true,
            Fault::HangUntilCancelled => !has_ended(),
            // This fault is in effect from the first call on.
            Fault::CannotBlock => return !has_ended(),
            Fault::OutOfMemory | Fault::DriverError | Fault::Panic | Fault::DeviceLost => false,
        };
        hangs && self.has_failed()
    }

    /// Returns whether the failing call was made.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls() > self.failing_call.load(Ordering::Relaxed)
    }
}

/// A driver that fails calls according to a plan.
pub(crate) struct FaultDriver {
    inner: Box<dyn Driver>,
    plan: Arc<FaultPlan>,
    /// The driver's properties, which tests may restrict.
    info: DeviceInfo,
}

impl FaultDriver {
    pub(crate) fn new(inner: Box<dyn Driver>, plan: &Arc<FaultPlan>) -> Self {
        let info = inner.info().clone();
        Self { inner, plan: plan.clone(), info }
    }

    /// Restricts the limits of the device.
    pub(crate) fn with_limits(mut self, restrict: impl FnOnce(&mut Limits)) -> Self {
        restrict(&mut self.info.limits);
        self
    }

    /// Counts a call, and returns the planned error if it is the failing one.
    fn count(&self, call: &'static str) -> Result<()> {
        let number = self.plan.calls.fetch_add(1, Ordering::Relaxed);
        let device = || self.info().name.clone();
        let is_failing = number == self.plan.failing_call.load(Ordering::Relaxed);
        assert!(!is_failing || self.plan.fault != Fault::Panic, "injected at {call}");
        if is_failing && self.plan.fault == Fault::DeviceLost {
            self.plan.lost.store(true, Ordering::Relaxed);
        }
        if self.plan.lost.load(Ordering::Relaxed) {
            let reason = format!("injected at {call}");
            return Err(GpuError::DeviceLost(DeviceLostError {
                function: None,
                device: device(),
                reason,
            }));
        }
        if is_failing && self.plan.fault == Fault::DriverError {
            let error = DriverError::new(&device(), call, "injected".to_owned(), DRIVER_FAILED);
            return Err(GpuError::Driver(error));
        }
        if is_failing && self.plan.fault == Fault::OutOfMemory {
            return Err(GpuError::OutOfMemory(OutOfMemoryError {
                function: None,
                device: device(),
                requested: None,
                label: call.to_owned(),
                detail: "injected".to_owned(),
                help: "drop buffers".to_owned(),
            }));
        }
        Ok(())
    }
}

impl Driver for FaultDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, kind: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        self.count("allocate")?;
        self.inner.allocate(kind, size, label)
    }

    fn free(&self, memory: MemoryId) {
        self.inner.free(memory);
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        self.count("write")?;
        self.inner.write(memory, offset, data)
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        self.count("read")?;
        self.inner.read(memory, offset, out)
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        self.count("compile")?;
        self.inner.compile(job)
    }

    fn poll_compiled(&self, kernel: KernelId, waker: &Waker) -> Poll<Result<()>> {
        self.inner.poll_compiled(kernel, waker)
    }

    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        self.count("compile")?;
        self.inner.compile_native(job)
    }

    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        self.count("compile")?;
        self.inner.load_routine(job)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn join_communicator(
        &self,
        job: &CommunicatorJob<'_>,
    ) -> Result<(KernelId, Arc<dyn Communicator>)> {
        self.count("join_communicator")?;
        self.inner.join_communicator(job)
    }

    fn load_host_function(&self, job: &HostJob<'_>) -> Result<KernelId> {
        self.count("compile")?;
        self.inner.load_host_function(job)
    }

    fn copy_kernel(&self) -> Option<&'static CopyKernel> {
        self.inner.copy_kernel()
    }

    fn indirect(&self) -> GridSource {
        self.inner.indirect()
    }

    fn report(&self, kernel: KernelId) -> Option<Arc<FailureReport>> {
        self.inner.report(kernel)
    }

    fn free_kernel(&self, kernel: KernelId) {
        self.inner.free_kernel(kernel);
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        self.count("record")?;
        self.inner.record(steps)
    }

    fn free_recording(&self, recording: RecordingId) {
        self.inner.free_recording(recording);
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        self.count("submit")?;
        self.inner.submit(work, timed)
    }

    fn can_block(&self) -> bool {
        self.plan.fault != Fault::CannotBlock
    }

    fn wait(&self, submission: SubmissionIndex, timeout: Duration) -> Result<bool> {
        self.count("wait")?;
        assert!(
            self.can_block() || timeout.is_zero(),
            "a blocking wait on a thread that must not block"
        );
        if self.plan.hangs(submission) {
            std::thread::sleep(timeout);
            return Ok(false);
        }
        self.inner.wait(submission, timeout)
    }

    fn notify(&self, submission: SubmissionIndex, waker: &Waker) -> Result<bool> {
        if self.plan.fault != Fault::CannotBlock {
            return Ok(false);
        }
        self.inner.wait(submission, Duration::MAX)?;
        self.plan.last_ended.fetch_max(submission.0, Ordering::Relaxed);
        waker.wake_by_ref();
        Ok(true)
    }

    fn cancel(&self, submission: SubmissionIndex) -> Result<Option<Cancelled>> {
        match self.plan.fault {
            Fault::Hang if self.plan.has_failed() => return Ok(None),
            Fault::HangUntilCancelled => {}
            _ => return self.inner.cancel(submission),
        }
        let ended = self.plan.last_ended.fetch_max(submission.0, Ordering::Relaxed);
        Ok(Some(Cancelled { first: SubmissionIndex(ended + 1), last: submission }))
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        self.count("timings")?;
        self.inner.timings(submission)
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        self.inner.discard_timings(submission);
    }

    fn free_memory(&self) -> Result<Option<u64>> {
        self.count("free_memory")?;
        self.inner.free_memory()
    }

    fn abandon(&self) {
        self.inner.abandon();
    }
}
