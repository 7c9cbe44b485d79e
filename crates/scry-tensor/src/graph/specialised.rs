//! A plan for the sizes of a run: its memory, its prepared launches, and their submission.
//!
//! Launches whose buffers belong to the plan are prepared once, and [`recorded`](super::recorded).
//! Those that read inputs or write outputs are prepared by each run, with the buffers of the run.

use std::ops::Range;
use std::sync::atomic::Ordering;

use scry_gpu::{Batch, Device, Recording, UntypedBuffer};

use super::arenas::Arenas;
use super::bound_graph::{BoundGraph, BoundNode};
use super::grouped::{BufferId, BufferInfo, Grouped, Kernel, Origin, Work};
use super::launches::{
    Initial, Prepared, Target, named, prepare_custom, prepare_maps, prepare_rows, row_buffers,
};
use super::out_of_memory::out_of_memory;
use super::plan::MemoryPlan;
use super::recorded::{RecordedRun, Recordings};
use super::sharded::{check_sizes, last_node, named_shards, prepare_row_shards};
use super::state_regions;
use crate::error::{Call, Error, Result};
use crate::runtime::MapLaunch;
use crate::shape::Layout;
use crate::stored::{Stored, check_bindings, map_shards};

/// A plan for sizes of the named dimensions.
pub(crate) struct Specialised {
    pub(crate) graph: BoundGraph,
    pub(crate) grouped: Grouped,
    pub(crate) memory: MemoryPlan,
    #[cfg(test)]
    arenas: Vec<UntypedBuffer>,
    /// Buffers of the plan: in an arena, or a parameter. `None` for inputs and outputs.
    buffers: Vec<Option<UntypedBuffer>>,
    /// Whether each buffer is the result of a map, which overwrites all its words.
    overwritten: Vec<bool>,
    /// The launches of kernels whose buffers belong to the plan.
    prepared: Vec<Option<Prepared>>,
    /// The same launches, for runs after the first.
    recordings: Recordings,
    /// How the kernels of the library compute, by position of the kernel.
    pub(crate) variants: Vec<Option<String>>,
    /// The number of launches that each kernel is split into.
    pub(crate) shards: Vec<usize>,
}

/// The memory that a plan keeps for all sizes.
#[derive(Clone, Copy)]
pub(super) struct Kept<'k> {
    pub(super) params: &'k [&'k Stored],
    pub(super) states: &'k [UntypedBuffer],
    pub(super) arenas: &'k Arenas,
}

/// Called with the batch, the position of a kernel and each of its results, after it was added.
pub(crate) type Observer<'o> =
    dyn FnMut(&mut Batch, usize, &UntypedBuffer) -> scry_gpu::Result<()> + 'o;

/// What a run with fixed inputs and outputs submits.
pub(super) enum BoundRun {
    Recording(Recording),
    Launches(Vec<Prepared>),
}

/// The fewest kernels of a run that is recorded on CUDA: a graph takes longer to launch than fewer.
const MIN_BOUND: usize = 4;

impl BoundRun {
    /// Submits a run.
    pub(super) fn submit(&self, device: &Device) -> scry_gpu::Result<()> {
        match self {
            Self::Recording(recording) => recording.replay().map(drop),
            Self::Launches(_) => {
                let mut batch = device.batch();
                self.add_to(&mut batch)?;
                batch.submit_async().map(drop)
            }
        }
    }

    /// Adds a run to a batch.
    pub(super) fn add_to(&self, batch: &mut Batch) -> scry_gpu::Result<()> {
        match self {
            Self::Recording(recording) => batch.replay(recording).map(drop),
            Self::Launches(launches) => launches.iter().try_for_each(|it| it.add_to(batch)),
        }
    }
}

impl Specialised {
    /// Allocates the memory and prepares the launches.
    pub(super) fn new(
        target: Target<'_>,
        call: Call,
        graph: BoundGraph,
        grouped: Grouped,
        memory: MemoryPlan,
        kept: Kept<'_>,
    ) -> Result<Self> {
        let runtime = target.runtime;
        check_sizes(runtime.device(), &graph, &grouped)?;
        let arenas = kept.arenas.take(&memory.arenas, |bytes| runtime.allocate(bytes));
        let arenas =
            arenas.map_err(|error| out_of_memory(call, error, &graph, &grouped, &memory))?;
        let buffer = |(n, info): (usize, &BufferInfo)| match info.origin {
            Origin::Input(_) | Origin::Output => Ok(None),
            Origin::Param(param) => Ok(Some(kept.params[param].buffer.clone())),
            Origin::State(state) => Ok(Some(kept.states[state].clone())),
            Origin::Constant => runtime.allocate(info.bytes).map(Some),
            Origin::Result => match memory.slots[n] {
                Some(slot) => {
                    let start = slot.offset as usize;
                    arenas[slot.arena].slice(start..start + info.bytes).map(Some)
                }
                None => runtime.allocate(0).map(Some),
            },
        };
        let buffers = grouped.buffers.iter().enumerate().map(buffer);
        let buffers: scry_gpu::Result<Vec<_>> = buffers.collect();
        let buffers = buffers.map_err(|error| call.gpu(error))?;
        let (prepared, variants, shards) = (Vec::new(), Vec::new(), Vec::new());
        let mut overwritten = vec![false; buffers.len()];
        for kernel in &grouped.kernels {
            let is_map = matches!(kernel.work, Work::Map { .. } | Work::Maps(_));
            kernel.results().iter().for_each(|it| overwritten[it.index()] = is_map);
        }
        let mut new = Self {
            graph,
            grouped,
            memory,
            #[cfg(test)]
            arenas,
            buffers,
            overwritten,
            prepared,
            recordings: Recordings::default(),
            variants,
            shards,
        };
        new.prepare_all(target)?;
        Ok(new)
    }

    #[cfg(test)]
    pub(super) fn arenas(&self) -> &[UntypedBuffer] {
        &self.arenas
    }

    /// Returns a buffer of the plan.
    pub(super) fn buffer(&self, id: BufferId) -> Option<&UntypedBuffer> {
        self.buffers[id.index()].as_ref()
    }

    /// Returns the launches of a kernel whose buffers belong to the plan.
    pub(super) fn prepared(&self, position: usize) -> Option<&Prepared> {
        self.prepared[position].as_ref()
    }

    /// Returns the number of recordings, and of kernels in them.
    #[cfg(test)]
    pub(super) fn recordings(&self) -> (usize, usize) {
        self.recordings.counts(self.grouped.kernels.len())
    }

    /// Prepares all kernels. Those that use inputs or outputs are compiled with other buffers, and
    /// those that depend on no input run now.
    fn prepare_all(&mut self, target: Target<'_>) -> Result<()> {
        let device = target.runtime.device();
        let mut stand_ins: Vec<Option<UntypedBuffer>> = vec![None; self.buffers.len()];
        for position in 0..self.grouped.kernels.len() {
            let kernel = &self.grouped.kernels[position];
            let node = self.node_of(kernel);
            for buffer in kernel.operands().into_iter().chain(kernel.results()) {
                let n = buffer.index();
                if self.buffers[n].is_none() && stand_ins[n].is_none() {
                    let bytes = self.grouped.buffers[n].bytes;
                    let allocated = target.runtime.allocate(bytes);
                    stand_ins[n] = Some(allocated.map_err(|error| located(node, error))?);
                }
            }
            let buffer =
                |id: BufferId| self.buffers[id.index()].as_ref().or(stand_ins[id.index()].as_ref());
            let (prepared, variant) = self.prepare(target, position, buffer)?;
            let shards = prepared.shards();
            let is_own = |id: &BufferId| self.buffers[id.index()].is_some();
            let is_own = kernel.operands().iter().chain(&kernel.results()).all(is_own);
            let is_constant =
                self.grouped.buffers[kernel.result.index()].origin == Origin::Constant;
            let prepared = match is_constant {
                true => {
                    let mut batch = device.batch();
                    let submitted = prepared.add_to(&mut batch).and_then(|()| batch.submit_async());
                    drop(submitted.map_err(|error| located(node, error))?);
                    Prepared::Nothing
                }
                false => prepared,
            };
            self.variants.push(variant);
            self.shards.push(shards);
            self.prepared.push(is_own.then_some(prepared));
        }
        Ok(())
    }

    /// Prepares a kernel with buffers.
    pub(super) fn prepare<'b>(
        &self,
        target: Target<'_>,
        position: usize,
        buffer: impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
    ) -> Result<(Prepared, Option<String>)> {
        let kernel = &self.grouped.kernels[position];
        let node = self.node_of(kernel);
        let Some(result) = buffer(kernel.result) else { return Ok((Prepared::Nothing, None)) };
        let is_empty = |id: &BufferId| self.grouped.buffers[id.index()].bytes == 0;
        if kernel.results().iter().all(is_empty) {
            return Ok((Prepared::Nothing, None));
        }
        let in_scope = |error: Error| error.in_scope(&node.scope);
        let check = || self.check_bound(target, kernel, &buffer);
        let prepared = match &kernel.work {
            Work::Map { .. } => {
                return self.prepare_map(target, position, &buffer, result).map_err(in_scope);
            }
            Work::Maps(parts) => {
                check()?;
                prepare_maps(target, parts, kernel, &buffer)
            }
            Work::Rows(work) => {
                let buffers = row_buffers(work, &buffer, result);
                let shards = prepare_row_shards(target, work, &buffers);
                if shards.is_none() {
                    check()?;
                }
                let whole = || prepare_rows(target, work, (work.rows, &work.walks), &buffers);
                shards.unwrap_or_else(whole).map(|it| (it, Some("rows".to_owned())))
            }
            Work::Library { library, operands, .. } => {
                let operands: Vec<_> = operands
                    .iter()
                    .filter_map(|(id, layout, dtype)| Some((buffer(*id)?, layout, *dtype)))
                    .collect();
                let residual = match self.memory.in_place[position] {
                    None => kernel.residual().and_then(|(_, residual)| buffer(residual)),
                    Some(_) => None,
                };
                let initial = match residual {
                    Some(from) => Initial::Copy { from: from.clone(), to: result.clone() },
                    None if library.accumulates() => Initial::Zero(result.clone()),
                    None => Initial::Any,
                };
                let to = (result, &kernel.shape);
                let on = (&**target.runtime, target.library);
                let ops = library.prepare_shards(node.call, on, &operands, to);
                return ops.map(|ops| named_shards(initial, ops)).map_err(in_scope);
            }
            Work::Custom { .. } => {
                check()?;
                prepare_custom(kernel, &buffer)
            }
            Work::Write { new, region, dtype } => {
                let from = buffer(*new).unwrap_or(result);
                let copies = state_regions::copies(region, dtype.size(), from, result);
                copies.map(|copies| (Prepared::Copies(copies), Some("copies".to_owned())))
            }
            Work::WriteRows { new, indices, dtype, index_dtype, count } => {
                let (Some(new), Some(indices)) = (buffer(*new), buffer(*indices)) else {
                    return Ok((Prepared::Nothing, None));
                };
                if *count == 0 {
                    return Ok((Prepared::Nothing, None));
                }
                let sizes = [kernel.shape[0], kernel.shape[1..].iter().product(), *count];
                let (dtype, indices_dtype) = (*dtype, *index_dtype);
                check()?;
                let rows = state_regions::Rows { new, indices, dtype, indices_dtype };
                rows.prepare(target.runtime, result, sizes).map(|op| named(Initial::Any, op))
            }
        };
        prepared.map_err(|error| located(node, error))
    }

    /// Checks that the device binds all buffers of a kernel.
    fn check_bound<'b>(
        &self,
        target: Target<'_>,
        kernel: &Kernel,
        buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
    ) -> Result<()> {
        let node = self.node_of(kernel);
        let sizes = |ids: Vec<BufferId>| {
            ids.into_iter().filter_map(buffer).map(|it| it.byte_size()).collect::<Vec<_>>()
        };
        let largest = sizes(kernel.results()).into_iter().max().unwrap_or(0);
        let operands = sizes(kernel.operands()).into_iter();
        let checked = check_bindings(node.call, target.runtime, operands, largest);
        checked.map_err(|error| error.in_scope(&node.scope))
    }

    /// Prepares a map, and counts its kernel if it is compiled.
    fn prepare_map<'b>(
        &self,
        target: Target<'_>,
        position: usize,
        buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
        result: &UntypedBuffer,
    ) -> Result<(Prepared, Option<String>)> {
        let kernel = &self.grouped.kernels[position];
        let call = self.node_of(kernel).call;
        let Work::Map { map, operands, arguments, gathered } = &kernel.work else {
            return Ok((Prepared::Nothing, None));
        };
        let operands: Vec<_> = operands
            .iter()
            .filter_map(|(id, layout)| Some((buffer(*id)?, layout.clone())))
            .collect();
        let launch = MapLaunch {
            map,
            sizes: &kernel.shape,
            // Shapes of results were checked to have at most `u32::MAX` elements.
            count: kernel.shape.count().unwrap_or(0) as u32,
            operands: &operands,
            gathered: *gathered,
            arguments,
        };
        let in_place = self.memory.in_place[position];
        let bytes = self.grouped.buffers[kernel.result.index()].bytes as u64;
        let shards = map_shards(call, target.runtime, &launch, bytes)?;
        let prepare = || -> scry_gpu::Result<(Prepared, u64)> {
            match &shards {
                None => {
                    let (launch, is_compiled) =
                        target.runtime.prepare(&launch, result, in_place)?;
                    Ok((Prepared::Map(launch), is_compiled.into()))
                }
                Some(shards) => {
                    let (launches, compiled) =
                        target.runtime.prepare_shards(&launch, shards, result, in_place)?;
                    let launches = launches.into_iter().map(Prepared::Map);
                    Ok((Prepared::Shards(launches.collect()), compiled))
                }
            }
        };
        let (prepared, compiled) = prepare().map_err(|error| call.gpu(error))?;
        target.compiles.fetch_add(compiled, Ordering::Relaxed);
        Ok((prepared, None))
    }

    /// Returns the node that a kernel computes last.
    pub(crate) fn node_of(&self, kernel: &Kernel) -> &BoundNode {
        last_node(&self.graph, kernel)
    }

    /// Adds the kernels to a batch, and returns the outputs. Inputs are packed. `after`, if any, is
    /// called with each kernel that was added, and its result.
    pub(crate) fn run(
        &self,
        target: Target<'_>,
        call: Call,
        batch: &mut Batch,
        inputs: &[Stored],
        after: Option<&mut Observer<'_>>,
    ) -> Result<Vec<Stored>> {
        let recorded = match after {
            None => self.recordings.for_run(target, call, self)?,
            Some(_) => None,
        };
        let given = self.given(target, call, inputs, false)?;
        match recorded {
            None => {
                let buffer = |id: BufferId| given[id.index()].as_ref().or(self.buffer(id));
                let all = 0..self.grouped.kernels.len();
                self.add_kernels(target, batch, all, &buffer, after)?;
            }
            Some(recorded) => {
                let buffer = |id: BufferId| {
                    recorded.staged(id).or(given[id.index()].as_ref()).or(self.buffer(id))
                };
                self.copy_staged(call, batch, &recorded, &given, true)?;
                recorded.add_to(call, batch, |batch, range| {
                    self.add_kernels(target, batch, range, &buffer, None)
                })?;
                self.copy_staged(call, batch, &recorded, &given, false)?;
            }
        }
        Ok(self.outputs(target, &given))
    }

    /// Returns the buffers of a run for inputs and outputs. Outputs that are bound are zero before
    /// the first run, and are not memory of earlier results.
    fn given(
        &self,
        target: Target<'_>,
        call: Call,
        inputs: &[Stored],
        is_bound: bool,
    ) -> Result<Vec<Option<UntypedBuffer>>> {
        let mut given = Vec::with_capacity(self.buffers.len());
        for (info, is_overwritten) in self.grouped.buffers.iter().zip(&self.overwritten) {
            given.push(match info.origin {
                Origin::Input(n) => Some(inputs[n].buffer.clone()),
                Origin::Output => {
                    let buffer = match *is_overwritten && !is_bound {
                        true => target.runtime.result(info.bytes),
                        false => target.runtime.allocate(info.bytes),
                    };
                    Some(buffer.map_err(|error| call.gpu(error))?)
                }
                _ => None,
            });
        }
        Ok(given)
    }

    /// Adds kernels with the buffers of a run.
    fn add_kernels<'b>(
        &self,
        target: Target<'_>,
        batch: &mut Batch,
        range: Range<usize>,
        buffer: &impl Fn(BufferId) -> Option<&'b UntypedBuffer>,
        mut after: Option<&mut Observer<'_>>,
    ) -> Result<()> {
        for position in range {
            let kernel = &self.grouped.kernels[position];
            let added = match &self.prepared[position] {
                Some(prepared) => prepared.add_to(batch),
                None => self.prepare(target, position, buffer)?.0.add_to(batch),
            };
            let observed = added.and_then(|()| {
                let Some(after) = &mut after else { return Ok(()) };
                let results = kernel.results();
                let mut results = results.iter().filter_map(|it| buffer(*it));
                results.try_for_each(|it| after(batch, position, it))
            });
            observed.map_err(|error| located(self.node_of(kernel), error))?;
        }
        Ok(())
    }

    /// Adds copies of inputs to buffers of the plan, or of outputs from them.
    fn copy_staged(
        &self,
        call: Call,
        batch: &mut Batch,
        recorded: &RecordedRun,
        given: &[Option<UntypedBuffer>],
        inputs: bool,
    ) -> Result<()> {
        for (n, info) in self.grouped.buffers.iter().enumerate() {
            let id = BufferId(n as u32);
            let (Some(staged), Some(given)) = (recorded.staged(id), &given[n]) else { continue };
            let copied = match matches!(info.origin, Origin::Input(_)) {
                is_input if is_input != inputs => continue,
                true => {
                    given.view_as(None).and_then(|given| batch.copy(&given, staged).map(|_| ()))
                }
                false => batch.copy(staged, given).map(|_| ()),
            };
            copied.map_err(|error| call.gpu(error))?;
        }
        Ok(())
    }

    /// Returns the outputs, in the buffers of a run.
    fn outputs(&self, target: Target<'_>, given: &[Option<UntypedBuffer>]) -> Vec<Stored> {
        let output = |(id, layout, dtype): &(BufferId, Layout, crate::dtype::DType)| {
            given[id.index()].as_ref().or(self.buffer(*id)).map(|buffer| Stored {
                runtime: target.runtime.clone(),
                buffer: buffer.clone(),
                layout: layout.clone(),
                dtype: *dtype,
            })
        };
        self.grouped.outputs.iter().filter_map(output).collect()
    }

    /// Records a run with inputs after the commands of a batch, which has `is_empty` or not, and
    /// returns its outputs, which each run overwrites.
    pub(super) fn bind(
        &self,
        target: Target<'_>,
        call: Call,
        (mut batch, is_empty): (Batch, bool),
        inputs: &[Stored],
    ) -> Result<(BoundRun, Vec<Stored>)> {
        let given = self.given(target, call, inputs, true)?;
        let buffer = |id: BufferId| given[id.index()].as_ref().or(self.buffer(id));
        let all = 0..self.grouped.kernels.len();
        let run = if is_empty && all.len() < MIN_BOUND && target.is_cuda() {
            let is_once = |n: &usize| matches!(self.prepared[*n], Some(Prepared::Nothing));
            let kernels = all.filter(|n| !is_once(n));
            let prepare = |n| self.prepare(target, n, buffer).map(|(prepared, _)| prepared);
            BoundRun::Launches(kernels.map(prepare).collect::<Result<_>>()?)
        } else {
            self.add_kernels(target, &mut batch, all, &buffer, None)?;
            BoundRun::Recording(batch.record().map_err(|error| call.gpu(error))?)
        };
        Ok((run, self.outputs(target, &given)))
    }
}

/// Returns an error of the device with the operation, the line and the scope of a node.
pub(super) fn located(node: &BoundNode, error: scry_gpu::GpuError) -> Error {
    node.call.gpu(error).in_scope(&node.scope)
}
