//! Executes code for workgroups on the calling thread.

mod affine;
mod atomics;
mod chain;
mod cooperative;
mod exchange;
mod frame;
mod indices;
mod masks;
mod memory;
mod memory_mul_add;
mod scalar_access;
mod scratch;
mod workgroup_memory;

use std::ops::Range;

pub(crate) use self::chain::MAX_STAGES;
pub(crate) use self::cooperative::FRAGMENTS;
pub(crate) use self::scratch::Scratch;

use self::frame::Frame;
use crate::code::Step;
use crate::lanes::{IsaLevel, LaneOp};
use crate::{CancelToken, Cancelled, Code, Launch};

/// Executes a range of workgroups in linear order: x is fastest, then y, then z.
///
/// # Safety
/// The memory of the launch's bindings is alive, and is accessed only by threads that execute the
/// same launch.
pub(crate) unsafe fn run(
    code: &Code,
    launch: &Launch<'_>,
    groups: Range<u64>,
    scratch: &mut Scratch,
    stop: &CancelToken,
) -> Result<(), Cancelled> {
    scratch.prepare(code, launch);
    // SAFETY: as the caller promises.
    let mut frame = unsafe { Frame::new(code, launch, scratch, IsaLevel::detect(), stop) };
    let batch = u64::from(code.lane_layout.batch);
    let width = u64::from(launch.groups[0]);
    let mut next = groups.start;
    while next < groups.end {
        // A batch is within one row of workgroups.
        let x = next % width;
        let count = batch.min(groups.end - next).min(width - x);
        // Interleaved lanes need a power-of-two number of workgroups: shifts and masks compute
        // their positions.
        let count = if code.lane_layout.interleaved { 1 << count.ilog2() } else { count };
        let row = next / width;
        let height = u64::from(launch.groups[1]);
        frame.begin([x as u32, (row % height) as u32, (row / height) as u32], count as u32);
        execute(&mut frame)?;
        next += count;
        if stop.requested() {
            return Err(Cancelled);
        }
    }
    Ok(())
}

/// Executes all steps for one batch.
fn execute(frame: &mut Frame<'_>) -> Result<(), Cancelled> {
    let steps = &frame.code.steps;
    let mut next = 0;
    loop {
        let step = &steps[next];
        next += 1;
        match step {
            Step::Lanes(op, args) => {
                op.lanes(frame.isa, frame.files(), frame.blocks(), args);
            }
            Step::Scalar(op, d, operands) => scalar(frame, *op, *d, operands),
            Step::Jump { to } => next = *to as usize,
            Step::JumpIfNot { condition, to } => {
                if frame.scalar(*condition) == 0 {
                    next = *to as usize;
                }
            }
            Step::JumpBack { .. } if frame.stop.requested() => return Err(Cancelled),
            Step::JumpBack { to } => next = *to as usize,
            Step::End => return Ok(()),
            Step::Split { .. }
            | Step::Else { .. }
            | Step::Join { .. }
            | Step::Enter { .. }
            | Step::Exit { .. }
            | Step::Break { .. } => {
                if let Some(to) = frame.update_masks(step) {
                    next = to as usize;
                }
            }
            _ => execute_data_step(frame, step),
        }
    }
}

#[inline(always)]
fn scalar(frame: &Frame<'_>, op: &dyn LaneOp, d: u32, operands: &[u32; 3]) {
    let result = op.scalar(frame.isa, operands.map(|operand| frame.scalar(operand)));
    frame.set_scalar(d, result);
}

/// Executes a step that is not control flow.
fn execute_data_step(frame: &mut Frame<'_>, step: &Step) {
    match step {
        Step::Splat { ty, block, scalar } => frame.splat(*ty, *block, frame.scalar(*scalar)),
        Step::Expand(affine) => frame.expand(*affine),
        Step::Affine { op, lanes, d, a, b } => frame.affine(*op, *lanes, *d, *a, *b),
        Step::AffineSelect { condition, d, a, b } => {
            frame.affine_select(*condition, *d, *a, *b);
        }
        Step::Compare { comparison, signed, lanes, d, a, b } => {
            frame.compare(*comparison, *signed, *lanes, *d, *a, *b);
        }
        Step::Logical { and, d, a, b } => frame.logical(*and, *d, *a, *b),
        Step::GroupId { axis, d } => {
            frame.set_scalar(*d, frame.group[usize::from(*axis)].into());
        }
        Step::GroupIdAffine(d) => frame.group_id(*d),
        Step::LocalId { axis, d } => frame.local_id(*axis, *d),
        Step::GroupCount { axis, d } => {
            frame.set_scalar(*d, frame.launch.groups[usize::from(*axis)].into());
        }
        Step::SubgroupLane { d } => frame.subgroup_lane(*d),
        Step::SubgroupId { d } => frame.subgroup_id(*d),
        Step::Length { d, binding, offset, stride } => {
            frame.length(*d, *binding, *offset, *stride);
        }
        Step::LoadScalar(access) => frame.load_scalar(access),
        Step::Load(access) => frame.load(access),
        Step::Store(access) => frame.store(access),
        Step::MemoryMulAdd(mul_add) => frame.memory_mul_add(mul_add),
        Step::Chain(chain) => frame.chain(chain),
        Step::Atomic(atomic) => frame.atomic(atomic),
        Step::SubgroupExchange { ty, exchange, d, value } => {
            frame.exchange(*ty, *exchange, *d, *value);
        }
        Step::MatrixMultiplyAdd(product) => frame.multiply_add(product),
        Step::Blend { ty, d, value } => frame.blend(*ty, *d, *value),
        Step::Zero { ty, d } => frame.zero(*ty, *d),
        _ => debug_assert!(false, "control flow is not executed here"),
    }
}
