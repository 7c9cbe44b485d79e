//! Products on the tensor cores of Ampere and what came after it (`sm_80`): fragments that the
//! lanes of a warp hold are multiplied at once.
//!
//! A block computes a tile of the result. Its operands pass through stages in shared memory, some
//! steps ahead of what is multiplied. Hopper's own instructions, which read shared memory
//! themselves, are about one and a half times as fast there.

mod choice;
mod inner;
mod stage;

use inner::{Block, Side};
use stage::{Copier, Lines, Operand};

pub(super) use choice::{TILES, depth};

use super::Gemm;
use super::order::{Division, Place, TileOrder, tile_of};
use super::store::{Results, Sink};
use crate::kernels::{Buffer, Interface, Kernel, LaunchShape, Parameter};
use crate::module::PtxKernel;
use crate::target::Target;
use crate::typed::hopper::Factors;
use crate::typed::{self, Code, Global, Ptr, Shared, Val};

/// How a block divides its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows and columns of the result.
    pub rows: u32,
    pub columns: u32,
    /// Stages.
    pub stages: u32,
    /// Warps from top to bottom, and from left to right.
    pub warps: [u32; 2],
    /// Blocks that share a multiprocessor.
    pub blocks: u32,
    /// Multiply-adds of halves of a multiprocessor in a cycle, as measured on one H200.
    pub rate: u32,
}

impl Tile {
    pub(crate) const fn threads(&self) -> u32 {
        self.warps[0] * self.warps[1] * 32
    }

    fn tag(&self) -> String {
        let Self { rows, columns, stages, warps, .. } = self;
        format!("{rows}x{columns}_{stages}_w{}x{}", warps[0], warps[1])
    }
}

/// A product whose result lies row by row, and whose lines begin at multiples of 16 bytes.
#[derive(Debug, Clone)]
pub(crate) struct Mma {
    gemm: Gemm,
    buffers: Vec<Buffer>,
    tile: Tile,
    factors: Factors,
    lines: [Lines; 2],
    sink: Sink,
    division: Division,
}

/// What a block has to know of the product.
struct Sizes<'k> {
    ends: [Val<'k, u32>; 2],
    depth: Val<'k, u32>,
    begin: Val<'k, u32>,
}

impl Mma {
    /// Lines of an operand in a stage, and bytes of each of them.
    fn stage_of(&self, side: usize) -> (u32, u32) {
        let size = [self.tile.rows, self.tile.columns][side];
        let lines = self.lines[side];
        (if lines.along { size } else { lines.depth() }, lines.pitch(size))
    }

    fn side_bytes(&self, side: usize) -> u32 {
        let (lines, pitch) = self.stage_of(side);
        lines * pitch
    }

    fn stage_bytes(&self) -> u32 {
        self.side_bytes(0) + self.side_bytes(1)
    }

    fn body(&self, k: &Code) {
        let bases = [k.pointer::<u8>("a"), k.pointer("b")];
        let results = Results::declare(k, self.sink);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.number::<u32>(name));
        let leading = ["a_leading", "b_leading"].map(|name| k.number::<u32>(name));
        let strides = ["a_stride", "b_stride"].map(|name| k.number::<u64>(name));
        let order = TileOrder::declare(k);
        let at = tile_of(k, &order, [self.tile.rows, self.tile.columns]);
        let begin = at.part * order.part_depth;
        let sizes = Sizes { ends: [m, n], depth: (depth - begin).min(order.part_depth), begin };
        let stages = k.dynamic_shared::<u8>(128);
        let copiers = [0, 1].map(|side| {
            let base = self.product_of(bases[side], at.batch, strides[side]);
            let operand = Operand {
                base,
                leading: leading[side],
                start: [at.row, at.column][side],
                whole: sizes.ends[side],
                begin: sizes.begin,
                depth: sizes.depth,
                offset: if side == 0 { 0 } else { self.side_bytes(0) },
            };
            let size = [self.tile.rows, self.tile.columns][side];
            Copier::new(k, self.lines[side], size, &self.tile, &operand)
        });
        let block = self.block(k, copiers, stages);
        block.run(sizes.depth);
        self.store(k, &results, &block, &at, sizes.ends);
    }

    /// Where an operand of one of the products begins.
    fn product_of<'k>(
        &self,
        base: Ptr<'k, Global, u8>,
        batch: Val<'k, u32>,
        stride: Val<'k, u64>,
    ) -> Ptr<'k, Global, u8> {
        base.at_wide(batch.convert::<u64>("") * stride * u64::from(self.lines[0].size))
    }

    fn block<'k>(
        &self,
        k: &'k Code,
        copiers: [Copier<'k>; 2],
        stages: Ptr<'k, Shared, u8>,
    ) -> Block<'k> {
        let warp = k.warp();
        let warps = [warp / self.tile.warps[1], warp % self.tile.warps[1]];
        let sides = [0, 1].map(|nth| {
            let size = [self.tile.rows, self.tile.columns][nth] / self.tile.warps[nth];
            Side {
                k,
                lines: self.lines[nth],
                left: nth == 0,
                pitch: self.stage_of(nth).1,
                first: stages.at(if nth == 0 { 0 } else { self.side_bytes(0) }),
                start: warps[nth] * size,
                count: size / 16,
            }
        });
        let sums = sides[0].count * sides[1].count * 2;
        Block {
            k,
            tile: self.tile,
            factors: self.factors,
            copiers,
            sides,
            stages,
            stage_bytes: self.stage_bytes(),
            sums: (0..sums).map(|_| [0; 4].map(|_| k.var(0.0f32))).collect(),
            multiplied: k.var(0u32),
            copied: k.var((self.tile.stages - 1) * self.stage_bytes()),
        }
    }

    fn store<'k>(
        &self,
        k: &'k Code,
        results: &Results<'k>,
        block: &Block<'k>,
        at: &Place<'k>,
        ends: [Val<'k, u32>; 2],
    ) {
        let [rows, columns] = &block.sides;
        let first =
            [at.row + rows.start + k.lane() / 4, at.column + columns.start + k.lane() % 4 * 2];
        let writer = results.writer(first, ends, at.batch, at.part);
        let eights = 2 * columns.count;
        for row in 0..2 * rows.count {
            writer.row(8 * row, |line| {
                for eight in 0..eights {
                    let sums = &block.sums[(row / 2 * eights + eight) as usize];
                    let pair = [2 * (row % 2), 2 * (row % 2) + 1];
                    line.write(8 * eight, pair.map(|nth| sums[nth as usize].get()));
                }
            });
        }
    }
}

impl Kernel for Mma {
    fn name(&self) -> String {
        let factors = match self.factors {
            Factors::F16 => "f16",
            Factors::Bf16 => "bf16",
            Factors::Tf32 => "tf32",
        };
        let lines = format!("{}{}", self.lines[0].tag(), self.lines[1].tag());
        format!("gemm_mma_{factors}_{}_{lines}_{}", self.tile.tag(), self.sink.tag())
    }

    fn default_target(&self) -> Target {
        Target::SM_80
    }

    fn write(&self, target: Target) -> PtxKernel {
        let block = [self.tile.threads(), 1, 1];
        let mut kernel = typed::kernel(&self.name(), target, block, |k| self.body(k));
        kernel.min_blocks = Some(self.tile.blocks);
        kernel
    }

    fn launch(&self) -> LaunchShape {
        LaunchShape {
            grid: self.division.grid().expect("it was checked when the kernel was chosen"),
            block: [self.tile.threads(), 1, 1],
            dynamic_shared: self.tile.stages * self.stage_bytes(),
        }
    }

    fn interface(&self) -> Interface {
        let gemm = &self.gemm;
        let sides = [gemm.m, gemm.n, gemm.k, gemm.a.leading, gemm.b.leading];
        let mut parameters: Vec<_> = (0..self.buffers.len()).map(Parameter::Pointer).collect();
        parameters.extend(Sink::parameters(gemm, self.division.part_stride(gemm)));
        parameters.extend(sides.map(|side| Parameter::U32(side as u32)));
        parameters.extend([gemm.a.stride, gemm.b.stride].map(Parameter::U64));
        parameters.extend(self.division.parameters());
        Interface { buffers: self.buffers.clone(), parameters }
    }
}
