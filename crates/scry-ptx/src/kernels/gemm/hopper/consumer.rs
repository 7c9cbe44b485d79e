//! The consumer warpgroups, which issue the MMAs.

use super::pipeline::Ring;
use super::schedule::{Schedule, WorkItem};
use super::split_k;
use super::store::Results;
use super::variant::{GROUP_ROWS, Major, ROW_BYTES, Store, Variant, WARPGROUP};
use crate::typed::hopper::{Accumulators, OperandA, Swizzle, Transposed, descriptor};
use crate::typed::{KernelBuilder, Ptr, Shared, Val};

/// Bytes of eight rows, the swizzle atom.
const ATOM: u32 = 8 * ROW_BYTES;

/// A warpgroup's accumulators, and its operands.
struct Tiles<'k> {
    variant: Variant,
    accumulators: Accumulators<'k>,
    /// Accumulators of a single stage, in TF32x3. They are added to the others in `f32`, since
    /// tensor cores truncate instead of rounding when they accumulate, and these errors would add
    /// up over K.
    stage_accumulators: Option<Accumulators<'k>>,
    /// Descriptors of the operand tiles in the first stage.
    a: Val<'k, u64>,
    b: Val<'k, u64>,
    /// The constant true predicate.
    always: Val<'k, bool>,
    /// The constant false predicate.
    never: Val<'k, bool>,
}

/// Writes the code of the consumer threads.
pub(super) fn write(
    k: &KernelBuilder,
    variant: Variant,
    memory: Ptr<'_, Shared, u8>,
    schedule: &Schedule<'_>,
    results: &Results<'_>,
) {
    let ring = Ring::for_consumer(k, variant, memory);
    let tiles = Tiles::new(k, variant, memory);
    k.pdl_wait();
    schedule.for_each(|item| {
        tiles.clear();
        let column_bias = results.load_column_bias(&item);
        match &tiles.stage_accumulators {
            None => accumulate(k, &tiles, &ring, &item),
            Some(accumulators) => accumulate_tf32x3(k, &tiles, accumulators, &ring, &item),
        }
        match variant.store {
            Store::Cluster(_) => {
                split_k::write(k, memory, schedule, results, &tiles.accumulators, &item);
            }
            _ => results.write(&tiles.accumulators, &item, column_bias.as_deref()),
        }
    });
    results.finish();
}

/// Accumulates over a work item's K. The MMAs of a stage run while the next stage is waited for.
fn accumulate(k: &KernelBuilder, tiles: &Tiles<'_>, ring: &Ring<'_>, item: &WorkItem<'_>) {
    let previous_stage = k.var::<u32>(0);
    k.for_range(item.k_tile_start, item.k_tile_end, 1, |nth| {
        ring.wait_full();
        k.wgmma_fence();
        tiles.multiply(ring.index());
        k.wgmma_commit_group();
        k.wgmma_wait_group(1);
        k.if_then(nth.ne(item.k_tile_start), || ring.release(previous_stage.get()));
        previous_stage.set(ring.index());
        ring.advance();
    });
    k.wgmma_wait_group(0);
    ring.release(previous_stage.get());
}

/// As [`accumulate`], for TF32x3. While one warpgroup adds, another one multiplies.
fn accumulate_tf32x3(
    k: &KernelBuilder,
    tiles: &Tiles<'_>,
    accumulators: &Accumulators<'_>,
    ring: &Ring<'_>,
    item: &WorkItem<'_>,
) {
    k.for_range(item.k_tile_start, item.k_tile_end, 1, |_| {
        ring.wait_full();
        k.wgmma_fence();
        tiles.multiply_tf32x3(accumulators, ring.index());
        k.wgmma_commit_group();
        k.wgmma_wait_group(0);
        ring.release(ring.index());
        for nth in 0..accumulators.columns() as usize / 2 {
            tiles.accumulators.set(nth, tiles.accumulators.get(nth) + accumulators.get(nth));
        }
        ring.advance();
    });
}

impl<'k> Tiles<'k> {
    fn new(k: &'k KernelBuilder, variant: Variant, memory: Ptr<'k, Shared, u8>) -> Self {
        let group = k.warp() / (WARPGROUP / 32);
        let rows = memory.plus_bytes(group * (GROUP_ROWS * ROW_BYTES));
        let columns = memory.offset(variant.a_bytes().into());
        Self {
            variant,
            accumulators: Accumulators::new(k, variant.tile.columns),
            stage_accumulators: (variant.terms == 2)
                .then(|| Accumulators::new(k, variant.tile.columns)),
            a: tile_descriptor(rows, variant.a),
            b: tile_descriptor(columns, variant.b),
            always: k.constant(0u32).eq(0),
            never: k.constant(0u32).ne(0),
        }
    }

    fn clear(&self) {
        (0..self.accumulators.columns() as usize / 2)
            .for_each(|nth| self.accumulators.set(nth, 0.0));
    }

    /// Issues the MMAs of a stage for TF32x3, those of the small terms first.
    fn multiply_tf32x3(&self, accumulators: &Accumulators<'k>, stage: Val<'k, u32>) {
        let Self { variant, a, b, .. } = *self;
        let offset: Val<'_, u64> = (stage * (variant.stage_bytes() >> 4)).convert("");
        let transposed = Transposed::default();
        let mut added = self.never;
        for (left, right) in [(1, 0), (0, 1), (0, 0)] {
            let (a, b) = (a + offset, b + offset);
            let a = a + u64::from(left * (variant.a_term_bytes() >> 4));
            let b = b + u64::from(right * (variant.b_term_bytes() >> 4));
            for step in 0..variant.k_dim() / variant.mma_type().k_dim() {
                let left = OperandA::Shared(a + descriptor_step(Major::K, step));
                let right = b + descriptor_step(Major::K, step);
                accumulators.multiply(variant.mma_type(), left, right, added, transposed);
                added = self.always;
            }
        }
    }

    /// Issues the MMAs of a stage.
    fn multiply(&self, stage: Val<'k, u32>) {
        let Self { variant, a, b, .. } = *self;
        let offset: Val<'_, u64> = (stage * (variant.stage_bytes() >> 4)).convert("");
        let transposed = Transposed { a: variant.a == Major::Mn, b: variant.b == Major::Mn };
        let (a, b): (Val<'_, u64>, Val<'_, u64>) = (a + offset, b + offset);
        for step in 0..variant.k_dim() / variant.mma_type().k_dim() {
            let left = OperandA::Shared(a + descriptor_step(variant.a, step));
            let right = b + descriptor_step(variant.b, step);
            self.accumulators.multiply(variant.mma_type(), left, right, self.always, transposed);
        }
    }
}

/// Returns the matrix descriptor of a tile in rows of 128 bytes. Unless it is K-major, the tile
/// consists of slabs of 64 elements along M or N.
fn tile_descriptor(at: Ptr<'_, Shared, u8>, major: Major) -> Val<'_, u64> {
    let slab = match major {
        Major::K => 16,
        Major::Mn => GROUP_ROWS * ROW_BYTES,
    };
    descriptor(at, slab, ATOM, Swizzle::B128)
}

/// Returns the descriptor increment of MMA number `step` along K, in units of 16 bytes.
const fn descriptor_step(major: Major, step: u32) -> u64 {
    let bytes = match major {
        Major::K => 32,
        Major::Mn => 16 * ROW_BYTES,
    };
    (step * bytes / 16) as u64
}
