//! Limits of the executor, workgroup batching, and a cost estimate.

use scry_ir::kir::{Block, Builtin, Inst, Kir, Stmt, Uniformity, for_each_stmt};

use super::analysis::divergence::divergent_exits;
use crate::code::{Code, LaneLayout, LimitExceeded};
use crate::lanes::BLOCK;

/// Maximum size in bytes of the private arrays of an invocation.
const MAX_LOCAL_BYTES: u64 = 256 << 10;

/// Maximum size in bytes of the registers of a thread.
const MAX_REGISTER_BYTES: u64 = 256 << 20;

/// Estimated nanoseconds of a step: fixed, and for each of its blocks.
const STEP_COST: u64 = 3;
const BLOCK_COST: u64 = 1;

/// Maximum lanes of a batch: more lanes amortise the overhead of a step, fewer keep registers in
/// the cache.
const MAX_BATCH_LANES: usize = 1024;

/// Maximum number of values of a kernel for batching: their registers for [`MAX_BATCH_LANES`] lanes
/// fit into the cache.
const MAX_BATCH_VALUES: usize = 100;

/// Maximum size in bytes of the workgroup memory of a batch.
const MAX_BATCH_WORKGROUP_BYTES: u64 = 64 << 10;

/// How a kernel is vectorised: its lanes, and the uniformity across them.
pub(super) struct Vectorization {
    pub(super) lane_layout: LaneLayout,
    pub(super) uniformity: Uniformity,
    /// Loops and scopes that lanes may leave while others stay, by label.
    pub(super) divergent_exits: Vec<bool>,
}

impl Vectorization {
    fn new(kir: &Kir, batch: u32) -> Self {
        let uniformity =
            if batch == 1 { kir.uniformity() } else { kir.uniformity_across_workgroups() };
        let divergent_exits = divergent_exits(kir, &uniformity);
        let size = kir.workgroup_size;
        // If workgroups have memory of their own, each block of lanes belongs to one workgroup.
        let interleaved = batch != 1 && size[1..] != [1, 1] && kir.workgroup.is_empty();
        Self { lane_layout: LaneLayout { size, batch, interleaved }, uniformity, divergent_exits }
    }

    /// Returns the vectorisation of a rewritten kernel, which has this uniformity.
    pub(super) fn for_rewritten(self, kir: &Kir, uniformity: &Uniformity) -> Self {
        Self {
            uniformity: uniformity.clone(),
            divergent_exits: divergent_exits(kir, uniformity),
            ..self
        }
    }
}

/// Returns the number of neighbouring workgroups that could be executed together, a power of two.
/// It is 1 unless a workgroup fills a power-of-two number of blocks, has little workgroup memory,
/// of 4-byte elements, and uses no private arrays, no subgroups and few values.
fn max_batch(kir: &Kir) -> u32 {
    let lanes: usize = kir.workgroup_size.iter().map(|size| *size as usize).product();
    let shared: u64 = kir.workgroup.iter().map(|array| array.size()).sum();
    let is_32_bit = kir.workgroup.iter().all(|array| array.ty.size() == 4);
    let independent = is_32_bit && kir.locals.is_empty() && !uses_subgroups(kir);
    let fits = lanes.is_multiple_of(BLOCK) && (lanes / BLOCK).is_power_of_two();
    if !independent || !fits || kir.values.len() > MAX_BATCH_VALUES || lanes >= MAX_BATCH_LANES {
        return 1;
    }
    let batch = (MAX_BATCH_LANES / lanes) as u32;
    if shared * u64::from(batch) <= MAX_BATCH_WORKGROUP_BYTES { batch } else { 1 }
}

/// Returns whether invocations exchange values within subgroups, or read subgroup numbers.
fn uses_subgroups(kir: &Kir) -> bool {
    let mut found = false;
    for_each_stmt(&kir.body, &mut |stmt| {
        found |= match stmt {
            Stmt::Let(value) => matches!(
                kir.inst(*value),
                Inst::Subgroup(_)
                    | Inst::MultiplyFragments { .. }
                    | Inst::Builtin(
                        Builtin::SubgroupLane | Builtin::SubgroupId | Builtin::SubgroupCount
                    )
            ),
            _ => false,
        };
    });
    found
}

/// Chooses the lanes of a kernel. Workgroups are batched only if exits of loops and scopes do not
/// diverge: in a batch, lanes that left a loop would wait for those of more workgroups.
pub(super) fn vectorize(kir: &Kir) -> Result<Vectorization, LimitExceeded> {
    let needed: u64 = kir.locals.iter().map(|array| array.size()).sum();
    if needed > MAX_LOCAL_BYTES {
        let what = "bytes of private arrays in an invocation".to_owned();
        return Err(LimitExceeded { what, needed, limit: MAX_LOCAL_BYTES });
    }
    let vectorization = Vectorization::new(kir, max_batch(kir));
    let diverges =
        vectorization.lane_layout.batch != 1 && vectorization.divergent_exits.contains(&true);
    Ok(if diverges { Vectorization::new(kir, 1) } else { vectorization })
}

/// Rejects code that needs more registers than [`MAX_REGISTER_BYTES`].
pub(super) fn check(code: &Code) -> Result<(), LimitExceeded> {
    let needed = code.files.bytes() as u64;
    if needed > MAX_REGISTER_BYTES {
        let what = "bytes of values and private arrays in a workgroup".to_owned();
        return Err(LimitExceeded { what, needed, limit: MAX_REGISTER_BYTES });
    }
    Ok(())
}

/// Estimates the nanoseconds of a workgroup, if it has no loops.
pub(super) fn cost(kir: &Kir, blocks: u32, batch: u32) -> Option<u64> {
    let step = STEP_COST + BLOCK_COST * u64::from(blocks);
    count_statements(&kir.body).map(|statements| (statements * step).div_ceil(batch.into()))
}

/// Counts the statements of a block; `None` if there is a loop.
fn count_statements(block: &Block) -> Option<u64> {
    block.iter().try_fold(0, |sum, stmt| {
        if matches!(stmt, Stmt::Loop { .. }) {
            return None;
        }
        stmt.blocks().try_fold(sum + 1, |sum, inner| Some(sum + count_statements(inner)?))
    })
}
