//! Stores the accumulators as results in global memory.

use super::inner::Block;
use super::{Ffma, FfmaTile};
use crate::kernels::gemm::params::{Task, Terms};
use crate::kernels::gemm::store::Writer;
use crate::typed::{Code, Ptr, Shared};

/// Elements per coalesced store of a warp.
const TOGETHER: u32 = 32;

impl Ffma {
    pub(super) fn store<'k>(
        &self,
        k: &'k Code,
        terms: &Terms<'k>,
        task: &Task<'k>,
        block: &Block<'k>,
    ) {
        let (at, reading) = (&task.at, &block.reading);
        let writer = |row, column| {
            let first = [at.row + row, at.column + column];
            terms.results.writer(first, terms.ends, at.batch, at.part)
        };
        if self.product.sink.quads || self.tile.warp_columns() < TOGETHER {
            self.store_quads(block, &writer(reading.row, reading.column));
        } else {
            let [down, across] = reading.warps;
            let column = across.mul_add(self.tile.warp_columns(), k.lane());
            self.store_lines(k, block, &writer(down * self.tile.warp_rows(), column));
        }
    }

    /// Stores four contiguous results per thread with vector stores, where they are aligned.
    fn store_quads<'k>(&self, block: &Block<'k>, writer: &Writer<'_, 'k>) {
        let [rows, columns] = self.tile.thread();
        for row in 0..rows {
            writer.row(FfmaTile::place(row, self.tile.lanes[0]), |line| {
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
    /// elements: without that, unaligned rows would be written four bytes in every sixteen.
    fn store_lines<'k>(&self, k: &'k Code, block: &Block<'k>, writer: &Writer<'_, 'k>) {
        let ([rows, columns], [down, across]) = (self.tile.thread(), self.tile.lanes);
        let pitch = self.tile.warp_columns() + 4;
        let [lane_down, lane_across] = block.reading.lanes;
        let mine = block.stages.at(k.warp() * (down * pitch));
        let to = mine.at(lane_down.mul_add(pitch, lane_across * 4));
        k.sync();
        for row in 0..rows {
            k.sync_warp();
            for quad in 0..columns / 4 {
                let at = (row * columns + 4 * quad) as usize;
                let accumulators: [_; 4] =
                    std::array::from_fn(|nth| block.accumulators[at + nth].get());
                to.at(4 * across * quad).store_vector(accumulators);
            }
            k.sync_warp();
            for line in 0..down {
                let offset = FfmaTile::place(row, down) + 4 * line;
                self.store_line(k, mine.at(line * pitch), offset, writer);
            }
        }
    }

    /// Stores one row of the warp, `offset` rows below its first one.
    fn store_line<'k>(
        &self,
        k: &'k Code,
        from: Ptr<'k, Shared, f32>,
        offset: u32,
        writer: &Writer<'_, 'k>,
    ) {
        let from = from.at(k.lane());
        writer.row(offset, |line| {
            for first in (0..self.tile.warp_columns()).step_by(TOGETHER as usize) {
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

    /// Returns the offset of a thread's `nth` row or column, interleaved in quads over this many
    /// lanes.
    const fn place(nth: u32, lanes: u32) -> u32 {
        nth / 4 * 4 * lanes + nth % 4
    }
}
