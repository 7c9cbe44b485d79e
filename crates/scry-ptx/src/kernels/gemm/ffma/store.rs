//! Stores the accumulators as results in global memory.

use super::inner::Block;
use super::{Ffma, FfmaTile};
use crate::kernels::gemm::params::{Params, Task};
use crate::kernels::gemm::store::Writer;
use crate::typed::{KernelBuilder, Ptr, Shared};

/// Elements that a warp stores at once, one per lane.
const WARP_STORE: u32 = 32;

impl Ffma {
    pub(super) fn store<'k>(
        &self,
        k: &'k KernelBuilder,
        params: &Params<'k>,
        task: &Task<'k>,
        block: &Block<'k>,
    ) {
        let (at, thread_tile) = (&task.at, &block.thread_tile);
        let writer = |row, column| {
            let first = [at.row + row, at.column + column];
            params.results.writer(first, params.mn, at.batch, at.split)
        };
        if self.product.store.is_vectorized || self.tile.warp_columns() < WARP_STORE {
            self.store_quads(block, &writer(thread_tile.row, thread_tile.column));
        } else {
            let [warp_row, warp_column] = thread_tile.warps;
            let column = warp_column.mul_add(self.tile.warp_columns(), k.lane());
            self.store_lines(k, block, &writer(warp_row * self.tile.warp_rows(), column));
        }
    }

    /// Stores four contiguous results per thread with vector stores, where they are aligned.
    fn store_quads<'k>(&self, block: &Block<'k>, writer: &Writer<'_, 'k>) {
        let [rows, columns] = self.tile.thread();
        for row in 0..rows {
            writer.row(FfmaTile::tile_offset(row, self.tile.lanes[0]), |line| {
                for quad in 0..columns / 4 {
                    let at = (row * columns + 4 * quad) as usize;
                    let accumulators =
                        std::array::from_fn(|nth| block.accumulators[at + nth].get());
                    line.write::<4>(4 * self.tile.lanes[1] * quad, accumulators);
                }
            });
        }
    }

    /// Exchanges results through shared memory so that neighbouring lanes store neighbouring
    /// elements. Without the exchange, each scalar store of a warp would write 4 of every 16 bytes
    /// of a row.
    fn store_lines<'k>(&self, k: &'k KernelBuilder, block: &Block<'k>, writer: &Writer<'_, 'k>) {
        let ([rows, columns], [lane_rows, lane_columns]) = (self.tile.thread(), self.tile.lanes);
        let pitch = self.tile.warp_columns() + 4;
        let [lane_down, lane_across] = block.thread_tile.lanes;
        let warp_buffer = block.stages.at(k.warp() * (lane_rows * pitch));
        let to = warp_buffer.at(lane_down.mul_add(pitch, lane_across * 4));
        k.sync();
        for row in 0..rows {
            k.sync_warp();
            for quad in 0..columns / 4 {
                let at = (row * columns + 4 * quad) as usize;
                let accumulators: [_; 4] =
                    std::array::from_fn(|nth| block.accumulators[at + nth].get());
                to.at(4 * lane_columns * quad).store_vector(accumulators);
            }
            k.sync_warp();
            for line in 0..lane_rows {
                let offset = FfmaTile::tile_offset(row, lane_rows) + 4 * line;
                self.store_line(k, warp_buffer.at(line * pitch), offset, writer);
            }
        }
    }

    /// Stores one row of the warp, `offset` rows below its first one.
    fn store_line<'k>(
        &self,
        k: &'k KernelBuilder,
        from: Ptr<'k, Shared, f32>,
        offset: u32,
        writer: &Writer<'_, 'k>,
    ) {
        let from = from.at(k.lane());
        writer.row(offset, |line| {
            for first in (0..self.tile.warp_columns()).step_by(WARP_STORE as usize) {
                line.write::<1>(first, [from.at(first).load()]);
            }
        });
    }
}

impl FfmaTile {
    /// Rows per warp.
    const fn warp_rows(&self) -> u32 {
        self.rows / self.warps[0]
    }

    /// Columns per warp.
    const fn warp_columns(&self) -> u32 {
        self.columns / self.warps[1]
    }

    /// Returns the offset in the warp's tile of a thread's `nth` row or column; quads are
    /// interleaved over this many lanes.
    const fn tile_offset(nth: u32, lanes: u32) -> u32 {
        nth / 4 * 4 * lanes + nth % 4
    }
}
