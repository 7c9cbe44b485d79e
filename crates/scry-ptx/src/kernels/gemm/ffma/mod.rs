//! Products in true f32, by the multipliers of ordinary arithmetic (`sm_80`).
//!
//! A block computes a tile of the result. Its operands pass through stages in shared memory, some
//! steps ahead of what is multiplied; each thread has its sums in registers as quads of neighbours,
//! so that one step of the depth takes a few loads of 16 bytes and a multiply-add for each sum.
//! What limits it is the number of instructions: for each depth, a thread has 128 multiply-adds and
//! 6 loads.

mod choice;
mod inner;
mod stage;
mod store;

use crate::kernels::name::Name;
use inner::{Block, Reading};
use stage::{Copier, Copying};

pub(super) use choice::{TILES, shared_bytes};

use super::params::{Launched, Operand, Terms};
use crate::kernels::{KernelInterface, LaunchShape, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, Code};

/// How a block divides its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows and columns of the result.
    pub rows: u32,
    pub columns: u32,
    /// Depth of a stage.
    pub depth: u32,
    /// Stages.
    pub stages: u32,
    /// Warps from top to bottom, and from left to right.
    pub warps: [u32; 2],
    /// Lanes of a warp, the same way: 2 and 16, 4 and 8, or turned.
    pub lanes: [u32; 2],
    /// Blocks that share a multiprocessor.
    pub blocks: u32,
    /// Multiply-adds of a multiprocessor in a cycle, as measured on one H200.
    pub rate: u32,
}

impl Tile {
    pub(crate) const fn threads(&self) -> u32 {
        self.warps[0] * self.warps[1] * 32
    }

    /// Rows and columns of a thread.
    const fn thread(&self) -> [u32; 2] {
        [
            self.rows / (self.warps[0] * self.lanes[0]),
            self.columns / (self.warps[1] * self.lanes[1]),
        ]
    }

    /// Appends the tile to the name of a kernel.
    fn named(&self, name: Name) -> Name {
        let Self { rows, columns, depth, stages, warps, lanes, .. } = self;
        let name = name.with(format_args!("{rows}x{columns}x{depth}"));
        let name = name.with(format_args!("s{stages}"));
        let name = name.with(format_args!("w{}x{}", warps[0], warps[1]));
        name.with(format_args!("l{}", lanes[0]))
    }
}

/// A product by CUDA cores.
#[derive(Debug, Clone)]
pub(crate) struct Ffma {
    product: Launched,
    tile: Tile,
    a: Copying,
    b: Copying,
}

impl Ffma {
    /// Bytes of the left operand in a stage.
    fn left_bytes(&self) -> u32 {
        4 * self.tile.depth * self.a.pitch(self.tile.rows)
    }

    fn stage_bytes(&self) -> u32 {
        self.left_bytes() + 4 * self.tile.depth * self.b.pitch(self.tile.columns)
    }

    fn body(&self, k: &Code) {
        let terms = Terms::declare(k, self.product.sink);
        let task = terms.task(k, [self.tile.rows, self.tile.columns], 4);
        let stages = k.dynamic_shared::<f32>(16);
        let copiers = self.copiers(k, &task.operands);
        let reading = Reading::new(k, &self.tile, [self.a, self.b], stages);
        let block = Block::new(k, &self.tile, copiers, reading, stages, self.stage_bytes());
        block.run(task.depth);
        self.store(k, &terms, &task, &block);
    }

    fn copiers<'k>(&self, k: &'k Code, [a, b]: &[Operand<'k>; 2]) -> [Copier<'k>; 2] {
        let Tile { rows, columns, .. } = self.tile;
        [
            Copier::new(k, self.a, rows, &self.tile, a, 0),
            Copier::new(k, self.b, columns, &self.tile, b, self.left_bytes()),
        ]
    }
}

impl PtxKernel for Ffma {
    fn name(&self) -> String {
        let name = Name::new("gemm_ffma").with(self.product.sink.output.name());
        let name = self.tile.named(name.layout(self.a.is_k_major(), self.b.is_k_major()));
        let name = name.with_if(self.a.is_vectorized(), "veca");
        self.product.sink.named(name.with_if(self.b.is_vectorized(), "vecb")).build()
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxEntry {
        let block = [self.tile.threads(), 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| self.body(k));
        kernel.min_blocks = Some(self.tile.blocks);
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
