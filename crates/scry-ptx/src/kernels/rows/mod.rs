//! Functions of rows, read once and written once: what softmax and norms share.
//!
//! A *thread group* of threads holds a row in registers: some lanes of a warp, a block, or a
//! cluster of blocks on `sm_90`; each thread has some elements, in vectors of 16 bytes. The lanes
//! of a warp combine what they know of their elements by shuffles, and warps by shared memory, that
//! of all blocks of a cluster, in one exchange. Then each thread computes and writes its results.
//!
//! Rows need not begin at a multiple of 16 bytes. What lies between two such places is held in
//! vectors anyway; the few elements before and behind are the *edges*, one for each of the first
//! threads. Rows that are too long for a thread group are *split*: a first launch leaves numbers of
//! each part in memory, a second one reads the row once more.
//!
//! The roof is memory: blocks wait for what they read, and compute nothing until all is there. To
//! keep memory at work meanwhile, a block has L2 fetch the row that is read when it
//! ends (`sm_90`); what was read is the first that this cache gives up.

mod exchange;
mod format;
mod fragment;
mod kernel;
mod op;
mod partition;
mod shape;
mod thread_group;

use std::sync::Arc;

pub(crate) use op::{Context, Item, RowOp, Stats, combined};
pub use shape::Rows;
pub use thread_group::Team;

use super::{GpuSpec, Place, Plan, PlanError, Step};
use kernel::{Role, RowKernel};

/// The launches for these rows on this device.
pub(crate) fn plan(op: Arc<dyn RowOp>, rows: Rows, machine: GpuSpec) -> Result<Plan, PlanError> {
    rows.check(&*op)?;
    match Team::choose(&*op, rows, machine) {
        Some(team) => plan_for(op, rows, team, machine),
        None => split(op, rows, machine),
    }
}

/// One launch of thread groups of this size.
pub(crate) fn plan_for(
    op: Arc<dyn RowOp>,
    rows: Rows,
    team: Team,
    machine: GpuSpec,
) -> Result<Plan, PlanError> {
    rows.check(&*op)?;
    let format = rows.format(&*op)?;
    team.check(&*op, rows, format)?;
    let kernel = RowKernel::new(op, rows, format, team, Role::Whole, machine)?;
    if rows.count == 0 {
        return Ok(Plan { arguments: kernel.buffers(), ..Plan::default() });
    }
    Ok(Plan::single(Box::new(kernel)))
}

/// Two launches, with the numbers of each part of each row between them.
fn split(op: Arc<dyn RowOp>, rows: Rows, machine: GpuSpec) -> Result<Plan, PlanError> {
    let format = rows.format(&*op)?;
    let team = Team::part(format, &*op);
    let gather = RowKernel::new(op.clone(), rows, format, team, Role::Gather, machine)?;
    let apply = RowKernel::new(op, rows, format, team, Role::Apply, machine)?;
    let arguments = apply.buffers();
    let arguments = arguments[..arguments.len() - 1].to_vec();
    if rows.count == 0 {
        return Ok(Plan { arguments, ..Plan::default() });
    }
    let mut places: Vec<_> = (0..arguments.len()).map(Place::Argument).collect();
    places.push(Place::Scratch(0));
    let first =
        Step { buffers: vec![Place::Argument(0), Place::Scratch(0)], kernel: Box::new(gather) };
    let scratch = vec![apply.scratch_bytes()];
    let second = Step { kernel: Box::new(apply), buffers: places };
    Ok(Plan { arguments, scratch, steps: vec![first, second] })
}
