//! The main loop over K: asynchronous copies for a later stage, and one FFMA per accumulator.

use super::FfmaTile;
use super::stage::{Copier, CopyKind};
use crate::asm::Opcode;
use crate::kernels::gemm::multistage::StageCursor;
use crate::typed::{KernelBuilder, Ptr, Shared, Val, Var};
use crate::types::PtxType;

/// The rows and columns of a thread, and where it reads their operands from a stage.
pub(super) struct ThreadTile<'k> {
    /// The thread's first row and column in the tile.
    pub row: Val<'k, u32>,
    pub column: Val<'k, u32>,
    /// The lane's row and column within the warp, in quads.
    pub lanes: [Val<'k, u32>; 2],
    /// The warp's row and column in the block.
    pub warps: [Val<'k, u32>; 2],
    sides: [Side<'k>; 2],
}

/// A thread's share of an operand: quads, which are interleaved over `lanes` lanes.
struct Side<'k> {
    quads: u32,
    lanes: u32,
    /// Elements from one index along K to the next.
    pitch: u32,
    /// The thread's first quad in the first stage.
    first: Ptr<'k, Shared, f32>,
}

impl<'k> ThreadTile<'k> {
    pub(super) fn new(
        k: &'k KernelBuilder,
        tile: &FfmaTile,
        copy_kinds: [CopyKind; 2],
        stages: Ptr<'k, Shared, f32>,
    ) -> Self {
        let lanes = lane_coordinates(k.lane(), tile.lanes);
        let (warp, counts) = (k.warp(), tile.thread());
        let warps = [warp / tile.warps[1], warp % tile.warps[1]];
        let [row, column] = [0, 1]
            .map(|side| warps[side].mul_add(counts[side] * tile.lanes[side], lanes[side] * 4));
        let pitches = [copy_kinds[0].pitch(tile.rows), copy_kinds[1].pitch(tile.columns)];
        let columns_at = stages.at(tile.k_dim * pitches[0]);
        let side = |nth: usize, first: Ptr<'k, Shared, f32>| Side {
            quads: counts[nth] / 4,
            lanes: tile.lanes[nth],
            pitch: pitches[nth],
            first,
        };
        let sides = [side(0, stages.at(row)), side(1, columns_at.at(column))];
        Self { row, column, lanes, warps, sides }
    }
}

/// Returns the row and column of a lane. Neighbouring lanes differ along the shorter side, those
/// two apart along the longer one, so that half a warp reads each operand without bank conflicts.
fn lane_coordinates<'k>(lane: Val<'k, u32>, lanes: [u32; 2]) -> [Val<'k, u32>; 2] {
    let (short, long) = match lanes[0].min(lanes[1]) {
        2 => (lane & 1, lane >> 1),
        _ => ((lane & 1) | (lane >> 1 & 2), (lane >> 1 & 1) | (lane >> 2 & 6)),
    };
    if lanes[0] > lanes[1] { [long, short] } else { [short, long] }
}

impl<'k> Side<'k> {
    /// Reads the thread's operand at index `k_index` along K of the stage at byte offset `stage`.
    fn read(&self, stage: Val<'k, u32>, k_index: u32) -> Vec<Val<'k, f32>> {
        let first = self.first.plus_bytes(stage).at(k_index * self.pitch);
        let quad = |nth: u32| first.at(nth * 4 * self.lanes).load_vector::<4>();
        (0..self.quads).flat_map(quad).collect()
    }
}

/// Writes a block's code for its tile.
pub(super) struct Block<'k> {
    k: &'k KernelBuilder,
    tile: FfmaTile,
    copiers: [Copier<'k>; 2],
    pub thread_tile: ThreadTile<'k>,
    pub stages: Ptr<'k, Shared, f32>,
    /// Accumulators, row by row of the thread's columns.
    pub accumulators: Vec<Var<'k, f32>>,
    cursor: StageCursor<'k>,
}

/// The operands of a thread at one index along K.
type Fragments<'k> = [Vec<Val<'k, f32>>; 2];

impl<'k> Block<'k> {
    pub(super) fn new(
        k: &'k KernelBuilder,
        tile: &FfmaTile,
        copiers: [Copier<'k>; 2],
        thread_tile: ThreadTile<'k>,
        stages: Ptr<'k, Shared, f32>,
        stage_bytes: u32,
    ) -> Self {
        let [rows, columns] = tile.thread();
        Self {
            k,
            tile: *tile,
            copiers,
            thread_tile,
            stages,
            accumulators: (0..rows * columns).map(|_| k.var(0.0f32)).collect(),
            cursor: StageCursor::new(k, tile.stages, stage_bytes),
        }
    }

    /// Accumulates over the whole K.
    pub(super) fn run(&self, k_dim: Val<'k, u32>) {
        let (k, tile) = (self.k, &self.tile);
        let steps = (k_dim + (tile.k_dim - 1)) / tile.k_dim;
        self.prologue(k_dim, steps);
        let current = self.read(0).map(|side| side.into_iter().map(|x| k.var(x)).collect());
        k.for_range(0, steps, 1, |step| self.step(&current, (step + (tile.stages - 1)).lt(steps)));
        k.cp_async_wait_group(0);
    }

    /// Starts the copies of all stages but one. Only the first stage may be partial, so
    /// that the others need no bounds checks.
    fn prologue(&self, k_dim: Val<'k, u32>, steps: Val<'k, u32>) {
        let (k, tile) = (self.k, &self.tile);
        let first = k_dim - (steps.max(1) - 1) * tile.k_dim;
        for copier in &self.copiers {
            copier.copy_first(self.stages, first);
            copier.advance(first);
        }
        k.cp_async_commit_group();
        for stage in 1..tile.stages - 1 {
            let (to, is_needed) =
                (self.stages.offset((stage * self.cursor.stage_bytes).into()), steps.gt(stage));
            self.copiers.iter().for_each(|copier| {
                (0..copier.len()).for_each(|nth| copier.copy(nth, to, is_needed));
                copier.advance_stage();
            });
            k.cp_async_commit_group();
        }
        k.cp_async_wait_group(tile.stages - 2);
        k.sync();
    }

    /// Multiplies a stage, whose first operands are in `current`. If `more` is true it starts the
    /// copies of a later stage. Afterwards `current` holds the first operands of the next stage.
    fn step(&self, current: &[Vec<Var<'k, f32>>; 2], more: Val<'k, bool>) {
        let k_dim = self.tile.k_dim;
        let mut fragments = current.each_ref().map(|side| side.iter().map(|x| x.get()).collect());
        for nth in 0..k_dim {
            if nth + 1 == k_dim {
                self.copiers.iter().for_each(Copier::advance_stage);
                self.cursor.advance();
            }
            let next = self.read((nth + 1) % k_dim);
            if nth == 0 {
                self.copy(more);
            }
            self.multiply(&fragments);
            fragments = next;
        }
        let all = current.iter().flatten().zip(fragments.iter().flatten());
        all.for_each(|(current, next)| current.set(*next));
    }

    fn read(&self, k_index: u32) -> Fragments<'k> {
        self.thread_tile
            .sides
            .each_ref()
            .map(|side| side.read(self.cursor.compute_stage.get(), k_index))
    }

    /// Starts the copies of a later stage, under a predicate. They are emitted together because
    /// ptxas inserts extra instructions before each copy that follows a read of shared memory.
    fn copy(&self, condition: Val<'k, bool>) {
        let to = self.stages.plus_bytes(self.cursor.copy_stage.get());
        for copier in &self.copiers {
            (0..copier.len()).for_each(|nth| copier.copy(nth, to, condition));
        }
    }

    /// Multiplies the operands at one index along K, row by row in serpentine order, so that
    /// consecutive FFMAs share an operand register.
    fn multiply(&self, [left, right]: &Fragments<'k>) {
        for (row, a) in left.iter().enumerate() {
            for nth in 0..right.len() {
                let column = if row % 2 == 0 { nth } else { right.len() - 1 - nth };
                let sum = self.accumulators[row * right.len() + column].reg();
                let operands = [a.reg().into(), right[column].reg().into(), sum.into()];
                let fma = Opcode::typed("fma.rn", PtxType::F32);
                self.k.edit(|body| body.op_into(sum, fma, &operands));
            }
        }
    }
}
