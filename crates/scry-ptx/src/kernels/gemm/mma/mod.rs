//! GEMM on tensor cores with `mma.sync` (Ampere and later, `sm_80`).
//!
//! A block computes a tile of the result. Its operands pass through a multistage pipeline in shared
//! memory, filled by `cp.async`. On Hopper `wgmma`, which reads shared memory itself, is about 1.6
//! times as fast.

mod inner;
mod shapes;
mod stage;
mod tile;

use crate::kernels::name::Name;
use crate::types::PtxType;
use inner::{Block, Side};
use stage::{Copier, OperandLayout};
pub(crate) use tile::MmaTile;

pub(super) use shapes::{TILES, UNALIGNED_TILES, k_dim, shared_bytes};

use super::multistage::StageCursor;
use super::params::{GemmLaunch, Params, Task};
use crate::kernels::{KernelInterface, LaunchShape, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::hopper::MmaType;
use crate::typed::{self, KernelBuilder, Ptr, Shared};

/// A GEMM on tensor cores. Operands whose rows are 16-byte aligned are copied fastest.
#[derive(Debug, Clone)]
pub(crate) struct Mma {
    product: GemmLaunch,
    tile: MmaTile,
    mma_type: MmaType,
    layouts: [OperandLayout; 2],
}

impl Mma {
    /// Elements of a tile along M (`nth` = 0, operand `a`) or N (`nth` = 1, operand `b`).
    fn side(&self, nth: usize) -> u32 {
        [self.tile.rows, self.tile.columns][nth]
    }

    /// Bytes of an operand per stage.
    fn side_bytes(&self, nth: usize) -> u32 {
        self.layouts[nth].stage_bytes(self.side(nth))
    }

    fn stage_bytes(&self) -> u32 {
        self.side_bytes(0) + self.side_bytes(1)
    }

    /// Byte offset of an operand in a stage.
    fn offset(&self, nth: usize) -> u32 {
        if nth == 0 { 0 } else { self.side_bytes(0) }
    }

    fn body(&self, k: &KernelBuilder) {
        let params = Params::declare(k, self.product.store);
        let task = params.task(k, [self.tile.rows, self.tile.columns], self.layouts[0].size);
        let stages = k.dynamic_shared::<u8>(128);
        let copiers = [0, 1].map(|nth| {
            let (operand, offset) = (&task.operands[nth], self.offset(nth));
            Copier::new(k, self.layouts[nth], self.side(nth), &self.tile, operand, offset)
        });
        let block = self.block(k, copiers, stages);
        block.run(task.k_dim);
        self.store(k, &params, &task, &block);
    }

    fn block<'k>(
        &self,
        k: &'k KernelBuilder,
        copiers: [Copier<'k>; 2],
        stages: Ptr<'k, Shared, u8>,
    ) -> Block<'k> {
        let warp = k.warp();
        let warps = [warp / self.tile.warps[1], warp % self.tile.warps[1]];
        let sides = [0, 1].map(|nth| {
            let size = self.side(nth) / self.tile.warps[nth];
            Side {
                k,
                layout: self.layouts[nth],
                is_a: nth == 0,
                pitch: self.layouts[nth].pitch(self.side(nth)),
                first: stages.at(self.offset(nth)),
                start: warps[nth] * size,
                count: size / 16,
            }
        });
        let accumulators = sides[0].count * sides[1].count * 2;
        Block {
            k,
            tile: self.tile,
            mma_type: self.mma_type,
            copiers,
            sides,
            stages,
            accumulators: (0..accumulators).map(|_| [0; 4].map(|_| k.var(0.0f32))).collect(),
            cursor: StageCursor::new(k, self.tile.stages, self.stage_bytes()),
        }
    }

    /// Stores the accumulators, in the register layout of `mma`: a lane holds two adjacent columns
    /// of each octet (8 columns), in rows `lane / 4` and `lane / 4 + 8` of each 16.
    fn store<'k>(
        &self,
        k: &'k KernelBuilder,
        params: &Params<'k>,
        task: &Task<'k>,
        block: &Block<'k>,
    ) {
        let ([rows, columns], at) = (&block.sides, &task.at);
        let first =
            [at.row + rows.start + k.lane() / 4, at.column + columns.start + k.lane() % 4 * 2];
        let writer = params.results.writer(first, params.mn, at.batch, at.split);
        let octets = 2 * columns.count;
        for row in 0..2 * rows.count {
            writer.row(8 * row, |line| {
                for octet in 0..octets {
                    let accumulators = &block.accumulators[(row / 2 * octets + octet) as usize];
                    let pair = [2 * (row % 2), 2 * (row % 2) + 1];
                    line.write(8 * octet, pair.map(|nth| accumulators[nth as usize].get()));
                }
            });
        }
    }
}

impl PtxKernel for Mma {
    fn name(&self) -> String {
        // The result's type is in the name if it is not that of the operands.
        let (operands, default_output) = match self.mma_type {
            MmaType::F16 => ("f16", PtxType::F16),
            MmaType::Bf16 => ("bf16", PtxType::Bf16),
            MmaType::Tf32 => ("tf32", PtxType::F32),
        };
        let store = &self.product.store;
        let name = Name::new("gemm_mma").with(operands);
        let name = name.with_if(store.output != default_output, store.output.name());
        let name = name.layout(self.layouts[0].k_major, self.layouts[1].k_major);
        let is_aligned = self.layouts.iter().all(|layout| layout.copy_bytes == 16);
        let [a, b] = self.layouts.map(OperandLayout::elements_per_copy);
        let name = if is_aligned { name } else { name.with(format_args!("align{a}x{b}")) };
        store.append_to(self.tile.append_to(name)).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [self.tile.threads(), 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| self.body(k));
        kernel.min_blocks = Some(self.tile.resident_blocks);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: self.product.grid(),
            block: [self.tile.threads(), 1, 1],
            dynamic_shared: self.tile.stages * self.stage_bytes(),
        }
    }

    fn interface(&self) -> KernelInterface {
        self.product.interface()
    }
}
