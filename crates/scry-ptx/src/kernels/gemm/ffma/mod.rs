//! Single-precision GEMM on CUDA cores (FFMA, `sm_80`).
//!
//! A block computes a tile of the result. Its operands pass through a multistage pipeline in shared
//! memory, filled by `cp.async`. A thread's rows and columns are in quads of four neighbours, so
//! that one index along K needs a few 16-byte loads and one FFMA per accumulator. The kernel is
//! bound by instruction issue: with the largest tiles, a thread executes 128 FFMAs and 6 loads per
//! index along K.

mod choice;
mod inner;
mod stage;
mod store;

use crate::kernels::name::Name;
use inner::{Block, ThreadTile};
use stage::{Copier, CopyKind};

pub(super) use choice::{TILES, shared_bytes};

use super::params::{GemmLaunch, Operand, Params};
use crate::kernels::{KernelInterface, LaunchShape, PtxKernel};
use crate::module::PtxEntry;
use crate::target::Target;
use crate::typed::{self, KernelBuilder};

/// The tile shape of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FfmaTile {
    /// Rows and columns of the result.
    pub rows: u32,
    pub columns: u32,
    /// Elements along K per stage.
    pub k_dim: u32,
    /// Pipeline stages.
    pub stages: u32,
    /// Rows and columns of warps.
    pub warps: [u32; 2],
    /// Rows and columns of lanes in a warp: 2 × 16, 4 × 8, or transposed.
    pub lanes: [u32; 2],
    /// Resident blocks per multiprocessor (occupancy).
    pub resident_blocks: u32,
    /// Multiply-adds per cycle and multiprocessor, measured on an H200.
    pub mul_adds_per_cycle: u32,
}

impl FfmaTile {
    pub(crate) const fn threads(&self) -> u32 {
        self.warps[0] * self.warps[1] * 32
    }

    /// Rows and columns per thread.
    const fn thread(&self) -> [u32; 2] {
        [
            self.rows / (self.warps[0] * self.lanes[0]),
            self.columns / (self.warps[1] * self.lanes[1]),
        ]
    }

    /// Appends the tile shape to a kernel's name.
    fn append_to(&self, name: Name) -> Name {
        let Self { rows, columns, k_dim, stages, warps, lanes, .. } = self;
        let name = name.with(format_args!("{rows}x{columns}x{k_dim}"));
        let name = name.with(format_args!("s{stages}"));
        let name = name.with(format_args!("w{}x{}", warps[0], warps[1]));
        name.with(format_args!("l{}", lanes[0]))
    }
}

/// A GEMM on CUDA cores.
#[derive(Debug, Clone)]
pub(crate) struct Ffma {
    product: GemmLaunch,
    tile: FfmaTile,
    a: CopyKind,
    b: CopyKind,
}

impl Ffma {
    /// Bytes of `a` in a stage.
    fn left_bytes(&self) -> u32 {
        4 * self.tile.k_dim * self.a.pitch(self.tile.rows)
    }

    fn stage_bytes(&self) -> u32 {
        self.left_bytes() + 4 * self.tile.k_dim * self.b.pitch(self.tile.columns)
    }

    fn body(&self, k: &KernelBuilder) {
        let params = Params::declare(k, self.product.store);
        let task = params.task(k, [self.tile.rows, self.tile.columns], 4);
        let stages = k.dynamic_shared::<f32>(16);
        let copiers = self.copiers(k, &task.operands);
        let thread_tile = ThreadTile::new(k, &self.tile, [self.a, self.b], stages);
        let block = Block::new(k, &self.tile, copiers, thread_tile, stages, self.stage_bytes());
        block.run(task.k_dim);
        self.store(k, &params, &task, &block);
    }

    fn copiers<'k>(&self, k: &'k KernelBuilder, [a, b]: &[Operand<'k>; 2]) -> [Copier<'k>; 2] {
        let FfmaTile { rows, columns, .. } = self.tile;
        [
            Copier::new(k, self.a, rows, &self.tile, a, 0),
            Copier::new(k, self.b, columns, &self.tile, b, self.left_bytes()),
        ]
    }
}

impl PtxKernel for Ffma {
    fn name(&self) -> String {
        let name = Name::new("gemm_ffma").with(self.product.store.output.name());
        let name = self.tile.append_to(name.layout(self.a.is_k_major(), self.b.is_k_major()));
        let name = name.with_if(self.a.is_vectorized(), "veca");
        self.product.store.append_to(name.with_if(self.b.is_vectorized(), "vecb")).build()
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
