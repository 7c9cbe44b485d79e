//! Limits of the executor, workgroup batching, and a cost estimate.

use scry_ir::kir::{Block, Builtin, Inst, Kir, Stmt, Uniformity, for_each_stmt};

use super::analysis::divergence::divergent_exits;
use crate::code::{Code, LaneLayout, LimitExceeded};
use crate::lanes::BLOCK;

/// Bytes of local memory and variables that an invocation may have.
const LOCAL_BYTES: u64 = 256 << 10;

/// Bytes of registers that a thread may need.
const REGISTER_BYTES: u64 = 256 << 20;

/// Estimated nanoseconds of a step: fixed, and for each of its blocks.
const STEP_COST: u64 = 3;
const BLOCK_COST: u64 = 1;

/// Maximum lanes of a batch: more lanes amortise the overhead of a step, fewer keep registers in
/// the cache.
const LANES: usize = 1024;

/// Maximum values of a kernel for batching: their registers for [`LANES`] lanes fit into the cache.
const FEW_VALUES: usize = 100;

/// Bytes of workgroup memory of all workgroups that are executed together.
const SHARED_BYTES: u64 = 64 << 10;

/// How a kernel is vectorised: its lanes, and the uniformity across them.
pub(super) struct Vectorization {
    pub(super) lane_layout: LaneLayout,
    pub(super) uniformity: Uniformity,
    /// Loops and scopes that lanes may leave while others stay, by label.
    pub(super) divergent_exits: Vec<bool>,
}

impl Vectorization {
    fn new(kir: &Kir, batch: u32) -> Self {
        let uniformity = if batch == 1 { kir.uniformity() } else { kir.uniformity_of_neighbours() };
        let divergent_exits = divergent_exits(kir, &uniformity);
        let size = kir.workgroup_size;
        // If workgroups have memory of their own, each block of lanes belongs to one workgroup.
        let interleaved = batch != 1 && size[1..] != [1, 1] && kir.workgroup.is_empty();
        Self { lane_layout: LaneLayout { size, batch, interleaved }, uniformity, divergent_exits }
    }

    /// The same for a rewritten kernel with this uniformity.
    pub(super) fn with(self, kir: &Kir, uniformity: &Uniformity) -> Self {
        Self {
            uniformity: uniformity.clone(),
            divergent_exits: divergent_exits(kir, uniformity),
            ..self
        }
    }
}

/// Returns the number of neighbouring workgroups that could be executed together: several if they
/// fill whole blocks, and have little memory, of 4-byte elements.
fn batch(kir: &Kir) -> u32 {
    let lanes: usize = kir.workgroup_size.iter().map(|size| *size as usize).product();
    let shared: u64 = kir.workgroup.iter().map(|array| array.size()).sum();
    let words = kir.workgroup.iter().all(|array| array.ty.size() == 4);
    let independent = words && kir.locals.is_empty() && !exchanges(kir);
    let fits = lanes.is_multiple_of(BLOCK) && (lanes / BLOCK).is_power_of_two();
    if !independent || !fits || kir.values.len() > FEW_VALUES || lanes >= LANES {
        return 1;
    }
    let batch = (LANES / lanes) as u32;
    if shared * u64::from(batch) <= SHARED_BYTES { batch } else { 1 }
}

/// Whether invocations exchange values within subgroups.
fn exchanges(kir: &Kir) -> bool {
    let mut exchanges = false;
    for_each_stmt(&kir.body, &mut |stmt| {
        exchanges |= match stmt {
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
    exchanges
}

/// Chooses the lanes of a kernel. Workgroups are batched only if loop exits do not diverge, since
/// lanes that left would wait longer.
pub(super) fn vectorize(kir: &Kir) -> Result<Vectorization, LimitExceeded> {
    let needed: u64 = kir.locals.iter().map(|array| array.size()).sum();
    if needed > LOCAL_BYTES {
        let what = "bytes of private arrays in an invocation".to_owned();
        return Err(LimitExceeded { what, needed, limit: LOCAL_BYTES });
    }
    let vectorization = Vectorization::new(kir, batch(kir));
    let diverges =
        vectorization.lane_layout.batch != 1 && vectorization.divergent_exits.contains(&true);
    Ok(if diverges { Vectorization::new(kir, 1) } else { vectorization })
}

/// Rejects code that needs more registers than [`REGISTER_BYTES`].
pub(super) fn check(code: &Code) -> Result<(), LimitExceeded> {
    let needed = code.files.bytes() as u64;
    if needed > REGISTER_BYTES {
        let what = "bytes of values and private arrays in a workgroup".to_owned();
        return Err(LimitExceeded { what, needed, limit: REGISTER_BYTES });
    }
    Ok(())
}

/// Estimates the nanoseconds of a workgroup, if it has no loops.
pub(super) fn cost(kir: &Kir, blocks: u32, batch: u32) -> Option<u64> {
    let step = STEP_COST + BLOCK_COST * u64::from(blocks);
    statements(&kir.body).map(|statements| (statements * step).div_ceil(batch.into()))
}

fn statements(block: &Block) -> Option<u64> {
    block.iter().try_fold(0, |sum, stmt| {
        if matches!(stmt, Stmt::Loop { .. }) {
            return None;
        }
        stmt.blocks().try_fold(sum + 1, |sum, inner| Some(sum + statements(inner)?))
    })
}
