//! Recorded runs: the kernels of a plan whose buffers belong to it, as recordings.
//!
//! A run replays the recordings in its one submission. Small inputs are copied to buffers of the
//! plan, and small outputs from them, so that the kernels that access these are recorded too. The
//! others are prepared and added by each run, between the recordings. The second run records: many
//! plans run once.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use scry_gpu::{BackendKind, Batch, Device, GpuError, Recording, UntypedBuffer};

use super::grouped::{BufferId, Kernel, Origin};
use super::launches::Target;
use super::specialised::{Specialised, located};
use crate::error::{Call, Result};

/// Inputs and outputs of at most this many bytes are copied on a GPU: a copy of more takes longer
/// than preparing a kernel.
const MAX_STAGED: usize = 256 << 10;

/// As [`MAX_STAGED`], on the CPU.
const MAX_STAGED_ON_CPU: usize = 8 << 10;

/// The fewest consecutive kernels that are recorded.
const MIN_RECORDED: usize = 4;

/// As [`MIN_RECORDED`], on CUDA: a graph takes as long to launch as a few kernels.
const MIN_RECORDED_ON_CUDA: usize = 8;

/// A plan's recordings, once there are any.
#[derive(Default)]
pub(super) struct Recordings(Mutex<Progress>);

#[derive(Default)]
enum Progress {
    /// There was no run yet.
    #[default]
    New,
    /// The next run records.
    HasRun,
    /// `None` if there is nothing to record.
    Recorded(Option<Arc<RecordedRun>>),
}

/// The kernels of a run, as recordings and ranges of others.
pub(super) struct RecordedRun {
    /// The buffers of the plan for inputs and outputs that are copied.
    staged: Vec<Option<UntypedBuffer>>,
    parts: Vec<Part>,
}

enum Part {
    Recording(Recording),
    /// Kernels that each run adds, by position.
    Kernels(Range<usize>),
}

impl Recordings {
    /// Returns the recordings for a run; `None` if it adds all kernels itself.
    pub(super) fn for_run(
        &self,
        target: Target<'_>,
        call: Call,
        plan: &Specialised,
    ) -> Result<Option<Arc<RecordedRun>>> {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*progress {
            Progress::New => {
                *progress = Progress::HasRun;
                Ok(None)
            }
            Progress::HasRun => {
                let recorded = match RecordedRun::new(target, call, plan) {
                    // The plan runs without, too.
                    Err(error) if matches!(error.gpu(), Some(GpuError::OutOfMemory(_))) => None,
                    other => other?.map(Arc::new),
                };
                *progress = Progress::Recorded(recorded.clone());
                Ok(recorded)
            }
            Progress::Recorded(recorded) => Ok(recorded.clone()),
        }
    }

    /// Returns the number of recordings, and of kernels in them.
    #[cfg(test)]
    pub(super) fn counts(&self, kernels: usize) -> (usize, usize) {
        let progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Progress::Recorded(Some(recorded)) = &*progress else { return (0, 0) };
        let added = recorded.parts.iter().map(|part| match part {
            Part::Recording(_) => 0,
            Part::Kernels(range) => range.len(),
        });
        let others = recorded.parts.iter().filter(|part| matches!(part, Part::Kernels(_))).count();
        (recorded.parts.len() - others, kernels - added.sum::<usize>())
    }
}

impl RecordedRun {
    /// Records the kernels of a plan; `None` if too few could be.
    fn new(target: Target<'_>, call: Call, plan: &Specialised) -> Result<Option<Self>> {
        let device = target.runtime.device();
        let can_stage = stageable(device, plan);
        let min = match device.backend_kind() {
            BackendKind::Cuda => MIN_RECORDED_ON_CUDA,
            _ => MIN_RECORDED,
        };
        let is_recorded = recorded_kernels(plan, &can_stage, min);
        if !is_recorded.contains(&true) {
            return Ok(None);
        }
        let kernels = &plan.grouped.kernels;
        let mut staged: Vec<Option<UntypedBuffer>> = vec![None; can_stage.len()];
        for (kernel, _) in kernels.iter().zip(&is_recorded).filter(|(_, is_recorded)| **is_recorded)
        {
            for id in buffers_of(kernel).filter(|id| can_stage[id.index()]) {
                let buffer = &mut staged[id.index()];
                if buffer.is_none() {
                    let bytes = plan.grouped.buffers[id.index()].bytes;
                    let new = target.runtime.allocate(bytes);
                    *buffer = Some(new.map_err(|error| call.gpu(error))?);
                }
            }
        }
        let buffer = |id: BufferId| staged[id.index()].as_ref().or(plan.buffer(id));
        let (mut parts, mut start) = (Vec::new(), 0);
        while start < kernels.len() {
            let same = is_recorded[start..].iter().take_while(|it| **it == is_recorded[start]);
            let range = start..start + same.count();
            start = range.end;
            parts.push(match is_recorded[range.start] {
                true => Part::Recording(record(target, call, plan, range, &buffer)?),
                false => Part::Kernels(range),
            });
        }
        Ok(Some(Self { staged, parts }))
    }

    /// Returns the plan's buffer for an input or output that is copied.
    pub(super) fn staged(&self, id: BufferId) -> Option<&UntypedBuffer> {
        self.staged[id.index()].as_ref()
    }

    /// Adds the kernels to a batch; `add` adds those of a range that are not recorded.
    pub(super) fn add_to(
        &self,
        call: Call,
        batch: &mut Batch,
        mut add: impl FnMut(&mut Batch, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        for part in &self.parts {
            match part {
                Part::Kernels(range) => add(batch, range.clone())?,
                Part::Recording(recording) => {
                    batch.replay(recording).map_err(|error| call.gpu(error))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns for each buffer whether it is an input or output that is small enough to be copied.
fn stageable(device: &Device, plan: &Specialised) -> Vec<bool> {
    let max = match device.backend_kind() {
        BackendKind::Cpu => MAX_STAGED_ON_CPU,
        _ => MAX_STAGED,
    };
    let buffers = plan.grouped.buffers.iter();
    let is_staged = buffers.map(|info| {
        matches!(info.origin, Origin::Input(_) | Origin::Output) && (1..=max).contains(&info.bytes)
    });
    is_staged.collect()
}

/// Returns for each kernel whether it is recorded: at least `min` consecutive kernels whose buffers
/// belong to the plan.
fn recorded_kernels(plan: &Specialised, can_stage: &[bool], min: usize) -> Vec<bool> {
    let is_own = |id: BufferId| can_stage[id.index()] || plan.buffer(id).is_some();
    let kernels = plan.grouped.kernels.iter();
    let mut is_recorded: Vec<bool> = kernels.map(|it| buffers_of(it).all(is_own)).collect();
    for sequence in is_recorded.chunk_by_mut(|a, b| a == b) {
        let is_long = sequence.len() >= min;
        sequence.iter_mut().for_each(|is_recorded| *is_recorded &= is_long);
    }
    is_recorded
}

fn buffers_of(kernel: &Kernel) -> impl Iterator<Item = BufferId> {
    kernel.operands().into_iter().chain(kernel.results())
}

/// Records kernels with buffers.
pub(super) fn record<'b>(
    target: Target<'_>,
    call: Call,
    plan: &Specialised,
    range: Range<usize>,
    buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
) -> Result<Recording> {
    let mut batch = target.runtime.device().batch();
    for position in range {
        let added = match plan.prepared(position) {
            Some(prepared) => prepared.add_to(&mut batch),
            None => plan.prepare(target, position, buffer)?.0.add_to(&mut batch),
        };
        added.map_err(|error| located(plan.node_of(&plan.grouped.kernels[position]), error))?;
    }
    batch.record().map_err(|error| call.gpu(error))
}
