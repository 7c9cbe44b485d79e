//! Row-wise functions that read and write each element once: the common part of softmax and norms.
//!
//! A *thread group* holds a row in registers: some lanes of a warp, a block, or on `sm_90` a
//! cluster of blocks. Each thread holds some elements, in vectors of 16 bytes. Statistics are
//! reduced by shuffles within a warp, and then in one exchange through (distributed) shared memory
//! between warps and the blocks of a cluster. Then each thread computes and stores its results.
//!
//! Rows need not be 16-byte aligned. The aligned part of a row is still held in vectors. The few
//! elements before and after it are the *edges*, which are distributed over the first threads. Rows
//! that are too long for a thread group are *split* into slices: a first launch stores the
//! statistics of each slice, a second one reads the rows again and computes the results.
//!
//! The kernels are memory-bound, and a block computes nothing until all its loads have arrived. To
//! keep memory busy meanwhile, a block prefetches the row of a later block into L2 (`sm_90`);
//! elements that have been read are marked for early eviction.

mod exchange;
mod format;
mod fragment;
mod kernel;
mod op;
mod partition;
mod shape;
mod thread_group;

use std::sync::Arc;

pub(crate) use op::{Context, Item, RowOp, Stats, reduce_values};
pub use shape::Rows;
pub use thread_group::ThreadGroup;

use super::{BufferSlot, GpuSpec, Plan, PlanError, Step};
use kernel::{Role, RowKernel};

/// Returns the launches for these rows on this GPU.
pub(crate) fn plan(op: Arc<dyn RowOp>, rows: Rows, gpu: GpuSpec) -> Result<Plan, PlanError> {
    rows.check(&*op)?;
    match ThreadGroup::choose(&*op, rows, gpu) {
        Some(thread_group) => plan_for(op, rows, thread_group, gpu),
        None => split(op, rows, gpu)?.checked_for(gpu.target),
    }
}

/// Returns one launch with a given thread group.
pub(crate) fn plan_for(
    op: Arc<dyn RowOp>,
    rows: Rows,
    thread_group: ThreadGroup,
    gpu: GpuSpec,
) -> Result<Plan, PlanError> {
    rows.check(&*op)?;
    let format = rows.format(&*op)?;
    thread_group.check(&*op, rows, format)?;
    let kernel = RowKernel::new(op, rows, format, thread_group, Role::Whole, gpu)?;
    if rows.count == 0 {
        return Ok(Plan { arguments: kernel.buffers(), ..Plan::default() });
    }
    Plan::single(Box::new(kernel)).checked_for(gpu.target)
}

/// Returns two launches, with the statistics of each slice of each row between them.
fn split(op: Arc<dyn RowOp>, rows: Rows, gpu: GpuSpec) -> Result<Plan, PlanError> {
    let format = rows.format(&*op)?;
    let thread_group = ThreadGroup::for_slices(format, &*op);
    let gather = RowKernel::new(op.clone(), rows, format, thread_group, Role::Gather, gpu)?;
    let apply = RowKernel::new(op, rows, format, thread_group, Role::Apply, gpu)?;
    let arguments = apply.buffers();
    let arguments = arguments[..arguments.len() - 1].to_vec();
    if rows.count == 0 {
        return Ok(Plan { arguments, ..Plan::default() });
    }
    let mut places: Vec<_> = (0..arguments.len()).map(BufferSlot::Argument).collect();
    places.push(BufferSlot::Scratch(0));
    let first = Step {
        buffers: vec![BufferSlot::Argument(0), BufferSlot::Scratch(0)],
        kernel: Box::new(gather),
    };
    let scratch = vec![apply.scratch_bytes()];
    let second = Step { kernel: Box::new(apply), buffers: places };
    Ok(Plan { arguments, scratch, steps: vec![first, second] })
}
