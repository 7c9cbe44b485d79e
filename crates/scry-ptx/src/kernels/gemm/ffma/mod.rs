//! Products in true binary32, by the multipliers of ordinary arithmetic (`sm_80`).
//!
//! A block computes a tile of the result. Its operands pass through stages in shared memory, some
//! steps ahead of what is multiplied; each thread has its sums in registers as quads of neighbours,
//! so that one step of the depth takes a few loads of 16 bytes and a multiply-add for each sum.
//! What limits it is the number of instructions: of a thread's 8 × 16 sums, 128 of 134 are
//! multiply-adds.

mod choice;
mod inner;
mod stage;

use inner::{Block, Reading};
use stage::{Copier, Copying, Operand};

pub(super) use choice::TILES;

use super::Gemm;
use super::order::{Division, TileOrder, tile_of};
use super::store::{Results, Sink};
use crate::kernels::{Buffer, Interface, Kernel, LaunchShape, Parameter};
use crate::module::PtxKernel;
use crate::target::Target;
use crate::typed::{self, Code, Val};

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

    fn tag(&self) -> String {
        let Self { rows, columns, depth, stages, warps, lanes, .. } = self;
        format!("{rows}x{columns}x{depth}_{stages}_w{}x{}_l{}", warps[0], warps[1], lanes[0])
    }
}

/// A product whose result lies row by row.
#[derive(Debug, Clone)]
pub(crate) struct Ffma {
    gemm: Gemm,
    buffers: Vec<Buffer>,
    tile: Tile,
    a: Copying,
    b: Copying,
    sink: Sink,
    division: Division,
}

impl Ffma {
    fn stage_bytes(&self) -> u32 {
        let Tile { rows, columns, depth, .. } = self.tile;
        4 * depth * (self.a.pitch(rows) + self.b.pitch(columns))
    }

    fn body(&self, k: &Code) {
        let (a, b) = (k.pointer::<f32>("a"), k.pointer::<f32>("b"));
        let results = Results::declare(k, self.sink);
        let [m, n, depth] = ["m", "n", "k"].map(|name| k.number::<u32>(name));
        let leading = ["a_leading", "b_leading"].map(|name| k.number::<u32>(name));
        let strides = ["a_stride", "b_stride"].map(|name| k.number::<u64>(name));
        let order = TileOrder::declare(k);
        let at = tile_of(k, &order, [self.tile.rows, self.tile.columns]);
        let batch = at.batch.convert::<u64>("");
        let begin = at.part * order.part_depth;
        let depth = (depth - begin).min(order.part_depth);
        let a = Operand {
            base: a.at_wide(batch * strides[0]),
            leading: leading[0],
            start: at.row,
            whole: m,
            depth: begin,
            offset: 0,
        };
        let b = Operand {
            base: b.at_wide(batch * strides[1]),
            leading: leading[1],
            start: at.column,
            whole: n,
            depth: begin,
            offset: 4 * self.tile.depth * self.a.pitch(self.tile.rows),
        };
        let stages = k.dynamic_shared::<f32>(16);
        let copiers = [
            Copier::new(k, self.a, self.tile.rows, &self.tile, &a),
            Copier::new(k, self.b, self.tile.columns, &self.tile, &b),
        ];
        let reading = Reading::new(k, &self.tile, [self.a, self.b], stages);
        let block = Block::new(k, &self.tile, copiers, reading, stages, self.stage_bytes());
        block.run(depth);
        self.store(&results, &block, [at.row, at.column], [m, n], at.batch, at.part);
    }

    fn store<'k>(
        &self,
        results: &Results<'k>,
        block: &Block<'k>,
        tile: [Val<'k, u32>; 2],
        ends: [Val<'k, u32>; 2],
        batch: Val<'k, u32>,
        part: Val<'k, u32>,
    ) {
        let [rows, columns] = self.tile.thread();
        let first = [tile[0] + block.reading.row, tile[1] + block.reading.column];
        let writer = results.writer(first, ends, batch, part);
        for row in 0..rows {
            writer.row(Tile::place(row, self.tile.lanes[0]), |line| {
                for quad in 0..columns / 4 {
                    let at = (row * columns + 4 * quad) as usize;
                    let sums = std::array::from_fn(|nth| block.sums[at + nth].get());
                    line.write::<4>(4 * self.tile.lanes[1] * quad, sums);
                }
            });
        }
    }
}

impl Kernel for Ffma {
    fn name(&self) -> String {
        let operands = format!("{}{}", self.a.tag(), self.b.tag());
        format!("gemm_ffma_{}_{operands}_{}", self.tile.tag(), self.sink.tag())
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

impl Tile {
    /// Where a thread's `nth` row, or column, is from its first one, with so many lanes side by
    /// side that hold four each.
    const fn place(nth: u32, lanes: u32) -> u32 {
        nth / 4 * 4 * lanes + nth % 4
    }
}
