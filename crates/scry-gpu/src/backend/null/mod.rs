//! The null driver: checks and logs submissions, and executes no kernels.
//!
//! Its memory is real: copies and fills are executed at once. WGSL kernels are translated to SPIR-V
//! and native ones checked, but none is executed. [`checker`] checks every submission independently
//! of how the core places barriers; submissions are logged for tests.

mod checker;
mod info;
mod native;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scry_ir::{FloatTypes, SpirvOptions, SpirvWorkarounds};

use self::checker::Checker;
use super::{Absence, describe_buffer, no_times};
use crate::api::error::{DEFECT, DriverError, GpuError, OutOfMemoryError, Result};
use crate::api::info::DeviceInfo;
use crate::api::native::Routine;
use crate::core::command::{BufferRange, Command, Groups, Step};
use crate::core::driver::{
    Adapter, CompileJob, Driver, FailureReport, GridSource, KernelId, KernelMark, MemoryId,
    MemoryKind, MemoryMark, NativeJob, RecordingId, RecordingMark, RoutineJob, SubmissionIndex,
    Work,
};
use crate::core::id::Slots;

/// Returns the null device, which is always available.
pub(crate) fn find() -> Result<Vec<Box<dyn Adapter>>, Absence> {
    Ok(vec![Box::new(NullAdapter(null_info()))])
}

pub(crate) use info::null_info;

/// The unopened null device. Tests may set its limits.
pub(crate) struct NullAdapter(pub DeviceInfo);

impl Adapter for NullAdapter {
    fn info(&self) -> &DeviceInfo {
        &self.0
    }

    fn open(&self) -> Result<Box<dyn Driver>> {
        Ok(Box::new(NullDriver::new(self.0.clone(), Log::default())))
    }
}

/// The steps of every submission, in order.
pub(crate) type Log = Arc<Mutex<Vec<Step>>>;

/// The opened null device.
pub(crate) struct NullDriver {
    info: DeviceInfo,
    state: Mutex<State>,
    log: Log,
    /// Indices of the launches that report a failure, counted over all submissions; `None` if no
    /// kernel has a failure report.
    failing_launches: Option<Vec<u64>>,
}

#[derive(Default)]
struct State {
    memories: Slots<MemoryMark, Vec<u8>>,
    /// Bytes of all allocations.
    allocated: u64,
    /// The number of bindings of each kernel.
    kernels: Slots<KernelMark, usize>,
    recordings: Slots<RecordingMark, Vec<Step>>,
    checker: Checker,
    /// Number of submissions.
    submitted: u64,
    /// Number of launches; counted only if kernels have failure reports.
    launched: u64,
    /// The timed submissions whose times were not read yet, with their number of launches.
    timed: Vec<(SubmissionIndex, usize)>,
}

impl NullDriver {
    /// Opens a null device that writes its submissions to `log`.
    pub(crate) fn new(info: DeviceInfo, log: Log) -> Self {
        Self { info, state: Mutex::default(), log, failing_launches: None }
    }

    /// Opens a null device whose kernels have failure reports: the launches with the indices
    /// `failing` report a failure.
    pub(crate) fn reporting(info: DeviceInfo, log: Log, failing: &[u64]) -> Self {
        Self { failing_launches: Some(failing.to_vec()), ..Self::new(info, log) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error for a call that violates a rule of the core: a defect of this crate, which
    /// no program should be able to cause.
    fn defect_error(&self, call: &'static str, why: String) -> GpuError {
        GpuError::Driver(DriverError::new(&self.info.name, call, why, DEFECT))
    }
}

impl Driver for NullDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, _: MemoryKind, size: u64, label: &str) -> Result<MemoryId> {
        let mut state = self.state();
        let free = self.info.memory.saturating_sub(state.allocated);
        let mut bytes = Vec::new();
        let fits = usize::try_from(size).ok().filter(|_| size <= free);
        let reserved = fits.is_some_and(|size| bytes.try_reserve_exact(size).is_ok());
        if !reserved {
            return Err(GpuError::OutOfMemory(OutOfMemoryError {
                function: None,
                device: self.info.name.clone(),
                requested: Some(size),
                label: describe_buffer(label),
                detail: format!("{free} of {} bytes are left", self.info.memory),
                help: "drop buffers".to_owned(),
            }));
        }
        // Not zero, so that tests detect reads of uninitialised memory.
        bytes.resize(size as usize, 0xA5);
        state.allocated += size;
        Ok(state.memories.insert(bytes))
    }

    fn free(&self, memory: MemoryId) {
        let mut state = self.state();
        let bytes = state.memories.remove(memory);
        state.allocated -= bytes.map_or(0, |bytes| bytes.len() as u64);
    }

    fn write(&self, memory: MemoryId, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state();
        let range = BufferRange { memory, offset, size: data.len() as u64 };
        let target = state.bytes_mut(range).map_err(|why| self.defect_error("write", why))?;
        target.copy_from_slice(data);
        Ok(())
    }

    fn read(&self, memory: MemoryId, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut state = self.state();
        let range = BufferRange { memory, offset, size: out.len() as u64 };
        let source = state.bytes_mut(range).map_err(|why| self.defect_error("read", why))?;
        out.copy_from_slice(source);
        Ok(())
    }

    fn compile(&self, job: &CompileJob<'_>) -> Result<KernelId> {
        job.program.to_spirv(&SpirvOptions {
            version: (1, 3),
            checked: job.checked,
            native_workgroup_zeroing: false,
            linearised: job.grid == GridSource::Linearised,
            workarounds: SpirvWorkarounds::all(),
            reports_aborted_loops: self.failing_launches.is_some(),
            polls: true,
            matrices: self.info.matrix_products,
            nan_preserving: FloatTypes::empty(),
            max_workgroup_memory: self.info.limits.max_workgroup_memory,
        })?;
        // The grid parameters and the failure report.
        let hidden = usize::from(job.grid == GridSource::Linearised)
            + usize::from(self.failing_launches.is_some());
        let bindings = job.program.interface().bindings.len() + hidden;
        Ok(self.state().kernels.insert(bindings))
    }

    fn compile_native(&self, job: &NativeJob<'_>) -> Result<KernelId> {
        native::check(&self.info, job).map_err(|why| self.defect_error("compile", why))?;
        Ok(self.state().kernels.insert(job.spec.interface.binding_count()))
    }

    fn load_routine(&self, job: &RoutineJob<'_>) -> Result<KernelId> {
        if Routine::from_name(job.name).is_none() {
            return Err(
                self.defect_error("load_routine", format!("there is no routine `{}`", job.name))
            );
        }
        Ok(self.state().kernels.insert(job.interface.binding_count()))
    }

    fn indirect(&self) -> GridSource {
        GridSource::Linearised
    }

    fn report(&self, _: KernelId) -> Option<Arc<FailureReport>> {
        self.failing_launches.as_ref()?;
        Some(Arc::new(FailureReport {
            problem: "failed by plan".to_owned(),
            limit: "no launch of the plan".to_owned(),
            help: "change the plan".to_owned(),
        }))
    }

    fn free_kernel(&self, kernel: KernelId) {
        self.state().kernels.remove(kernel);
    }

    fn record(&self, steps: &[Step]) -> Result<RecordingId> {
        Ok(self.state().recordings.insert(steps.to_vec()))
    }

    fn free_recording(&self, recording: RecordingId) {
        self.state().recordings.remove(recording);
    }

    fn submit(&self, work: Work<'_>, timed: bool) -> Result<SubmissionIndex> {
        let mut state = self.state();
        let flattened = state.flatten(work).map_err(|why| self.defect_error("submit", why))?;
        let steps: &[Step] = &flattened;
        for step in steps {
            state.execute(step).map_err(|why| self.defect_error("submit", why))?;
            if let (Step::Run(Command::Dispatch(dispatch)), Some(failing)) =
                (step, &self.failing_launches)
            {
                let fails = failing.contains(&state.launched);
                state.launched += 1;
                let report = dispatch.bindings.last().filter(|_| fails);
                if let Some(report) = report.and_then(|it| state.bytes_mut(it.range).ok()) {
                    // The launch has failed if the first word is not zero.
                    report[..4].copy_from_slice(&1u32.to_ne_bytes());
                }
            }
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(steps);
        state.submitted += 1;
        let submission = SubmissionIndex(state.submitted);
        if timed {
            let launches = steps.iter().filter(|s| matches!(s, Step::Run(Command::Dispatch(_))));
            let launches = launches.count();
            state.timed.push((submission, launches));
        }
        Ok(submission)
    }

    fn wait(&self, submission: SubmissionIndex, _: Duration) -> Result<bool> {
        Ok(submission.0 <= self.state().submitted)
    }

    fn timings(&self, submission: SubmissionIndex) -> Result<Vec<Duration>> {
        let mut state = self.state();
        let index = state.timed.iter().position(|(timed, _)| *timed == submission);
        let index = index.ok_or_else(|| self.defect_error("timings", no_times(submission.0)))?;
        Ok(vec![Duration::ZERO; state.timed.swap_remove(index).1])
    }

    fn discard_timings(&self, submission: SubmissionIndex) {
        self.state().timed.retain(|(timed, _)| *timed != submission);
    }

    fn abandon(&self) {}
}

impl State {
    /// Returns the steps of works and recordings.
    fn flatten<'w>(&self, work: Work<'w>) -> Result<Cow<'w, [Step]>, String> {
        Ok(match work {
            Work::Once(steps) => Cow::Borrowed(steps),
            Work::Replay(id) => {
                Cow::Owned(self.recordings.get(id).ok_or_else(|| format!("no {id:?}"))?.clone())
            }
            Work::Sequence(works) => {
                let mut steps = Vec::new();
                for work in works {
                    steps.extend_from_slice(&self.flatten(*work)?);
                }
                Cow::Owned(steps)
            }
        })
    }

    /// Checks a step; executes it unless it is a dispatch.
    fn execute(&mut self, step: &Step) -> Result<(), String> {
        self.checker.check(step)?;
        match step {
            Step::Barrier(_) => Ok(()),
            Step::Run(Command::Fill { dst, pattern }) => {
                let bytes = self.bytes_mut(*dst)?;
                let pattern = pattern.to_ne_bytes();
                bytes.chunks_mut(4).for_each(|word| word.copy_from_slice(&pattern[..word.len()]));
                Ok(())
            }
            Step::Run(Command::Copy { src, dst }) => {
                let bytes = self.bytes_mut(*src)?.to_vec();
                self.bytes_mut(*dst)?.copy_from_slice(&bytes);
                Ok(())
            }
            Step::Run(Command::Dispatch(dispatch)) => {
                let bindings = self.kernels.get(dispatch.kernel).copied();
                if bindings != Some(dispatch.bindings.len()) {
                    return Err(format!("{dispatch:?} does not fit its kernel: {bindings:?}"));
                }
                let mut ranges: Vec<BufferRange> =
                    dispatch.bindings.iter().map(|it| it.range).collect();
                if let Groups::Indirect(counts) = &dispatch.groups {
                    ranges.push(**counts);
                }
                ranges.into_iter().try_for_each(|range| self.bytes_mut(range).map(|_| ()))
            }
        }
    }

    fn bytes_mut(&mut self, range: BufferRange) -> Result<&mut [u8], String> {
        let bytes =
            self.memories.get_mut(range.memory).ok_or(format!("{range:?} does not exist"))?;
        let bounds = range.offset as usize..range.end() as usize;
        bytes.get_mut(bounds).ok_or(format!("{range:?} is out of bounds"))
    }
}
