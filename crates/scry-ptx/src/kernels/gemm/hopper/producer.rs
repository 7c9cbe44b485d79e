//! The threads that have operands copied into shared memory, one for each: so that one operand can
//! be on its way while the other one is still being made by the launch before.

use super::pipeline::Ring;
use super::schedule::{Part, Schedule};
use super::variant::{Early, GROUP_ROWS, LINE, Major, Variant};
use crate::typed::hopper::Barrier;
use crate::typed::{Code, Policy, Ptr, Shared, Val};

/// Elements along the outer dimension of what one copy brings where that is the dense one.
const SLAB: u32 = GROUP_ROWS;

/// What is read: tensor maps, and whether they have a matrix for each product of the batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operands<'k> {
    a: Val<'k, u64>,
    b: Val<'k, u64>,
    a_batched: Val<'k, u32>,
    b_batched: Val<'k, u32>,
    /// Matrices of each part.
    a_matrices: Val<'k, u32>,
    b_matrices: Val<'k, u32>,
}

/// What is copied into a stage.
struct Copy<'k> {
    to: Ptr<'k, Shared, u8>,
    depth: Val<'k, u32>,
    full: Barrier<'k>,
    /// What the cache does with what is read once.
    policy: Option<Policy<'k>>,
}

impl<'k> Operands<'k> {
    /// Declares the parameters.
    pub(super) fn new(k: &'k Code) -> Self {
        Self {
            a: k.tensor_map("a"),
            b: k.tensor_map("b"),
            a_batched: k.number("a_batched"),
            b_batched: k.number("b_batched"),
            a_matrices: k.number("a_matrices"),
            b_matrices: k.number("b_matrices"),
        }
    }

    /// Fetches the tensor maps.
    pub(super) fn prefetch(&self, k: &Code) {
        k.prefetch_map(self.a);
        k.prefetch_map(self.b);
    }
}

/// What both threads know.
pub(super) struct Producer<'k> {
    pub(super) k: &'k Code,
    pub(super) variant: Variant,
    pub(super) memory: Ptr<'k, Shared, u8>,
    pub(super) schedule: Schedule<'k>,
    pub(super) operands: Operands<'k>,
}

impl<'k> Producer<'k> {
    /// Writes what the thread of `a` does; it says how many bytes come of both operands.
    pub(super) fn bring_a(&self) {
        let Self { variant, operands, .. } = self;
        self.begin(variant.early == Early::A);
        let policy = variant.once.a.then(|| self.k.evict_first());
        self.each(operands.a_batched, |ring, part, matrix, depth| {
            let full = ring.expect();
            for nth in 0..variant.parts {
                let to = ring.stage().offset((nth * variant.a_part()).into());
                let matrix = matrix + operands.a_matrices * nth;
                let copy = Copy { to, depth, full, policy };
                copy.whole(variant.a, variant.tile.rows(), operands.a, part.row, matrix);
            }
        });
    }

    /// Writes what the thread of `b` does.
    pub(super) fn bring_b(&self) {
        let Self { variant, operands, schedule, .. } = self;
        self.begin(variant.early == Early::B);
        let policy = variant.once.b.then(|| self.k.evict_first());
        self.each(operands.b_batched, |ring, part, matrix, depth| {
            let full = ring.wait_empty();
            for nth in 0..variant.parts {
                let to = ring.stage().offset((variant.a_bytes() + nth * variant.b_part()).into());
                let matrix = matrix + operands.b_matrices * nth;
                let copy = Copy { to, depth, full, policy };
                copy.columns(variant, schedule, operands.b, part, matrix);
            }
        });
    }

    /// Waits for the launch before, unless its operand is there already.
    fn begin(&self, early: bool) {
        if !early {
            self.k.wait_for_launch_before();
            self.k.let_next_launch_begin();
        }
    }

    /// Writes what is done for each stage of each part: of a matrix, if there is one for each of
    /// the batch, from some element along K on.
    fn each(
        &self,
        batched: Val<'k, u32>,
        bring: impl FnOnce(&Ring<'k>, &Part<'_>, Val<'_, u32>, Val<'k, u32>),
    ) {
        let ring = Ring::of_filler(self.k, self.variant, self.memory);
        self.schedule.each(|part| {
            let matrix = part.batch * batched;
            self.k.for_range(part.begin, part.end, 1, |nth| {
                bring(&ring, &part, matrix, nth * self.variant.depth());
                ring.advance();
            });
        });
    }
}

impl<'k> Copy<'k> {
    /// A block's own operand.
    fn whole(
        &self,
        major: Major,
        extent: u32,
        map: Val<'k, u64>,
        first: Val<'k, u32>,
        batch: Val<'k, u32>,
    ) {
        match major {
            Major::Inner => self.fetch(self.to, map, [self.depth, first, batch]),
            Major::Outer => (0..extent / SLAB).for_each(|slab| {
                let to = self.to.offset((slab * SLAB * LINE).into());
                self.fetch(to, map, [first + slab * SLAB, self.depth, batch]);
            }),
        }
    }

    fn fetch(&self, to: Ptr<'k, Shared, u8>, map: Val<'k, u64>, at: [Val<'k, u32>; 3]) {
        let k = map.code();
        match self.policy {
            None => k.fetch_tile(to, map, at, self.full),
            Some(policy) => k.fetch_tile_by(policy, to, map, at, self.full),
        }
    }

    /// The operand of which each block of a cluster has a part copied for all.
    fn columns(
        &self,
        variant: &Variant,
        schedule: &Schedule<'k>,
        map: Val<'k, u64>,
        part: &Part<'k>,
        batch: Val<'k, u32>,
    ) {
        let Variant { tile, b: major, .. } = *variant;
        if tile.cluster == 1 {
            return self.whole(major, tile.columns, map, part.column, batch);
        }
        let (k, rank) = (batch.code(), schedule.rank());
        let everyone = k.constant((1u32 << tile.cluster) - 1).convert::<u16>("");
        let share = tile.columns / tile.cluster;
        match major {
            Major::Inner => {
                let to = self.to.plus_bytes(rank * (share * LINE));
                let at = [self.depth, part.column + rank * share, batch];
                k.fetch_tile_for(to, map, at, self.full, everyone);
            }
            Major::Outer => {
                let lines = SLAB / tile.cluster;
                (0..tile.columns / SLAB).for_each(|slab| {
                    let to = self.to.offset((slab * SLAB * LINE).into());
                    let to = to.plus_bytes(rank * (lines * LINE));
                    let at = [part.column + slab * SLAB, self.depth + rank * lines, batch];
                    k.fetch_tile_for(to, map, at, self.full, everyone);
                });
            }
        }
    }
}

/// Elements of a tile of `a` along the dense and the other dimension.
pub(super) const fn a_box(variant: &Variant) -> [u32; 2] {
    match variant.a {
        Major::Inner => [variant.depth(), variant.tile.rows()],
        Major::Outer => [SLAB, variant.depth()],
    }
}

/// Elements of a tile of `b` along the dense and the other dimension.
pub(super) const fn b_box(variant: &Variant) -> [u32; 2] {
    let Variant { tile, .. } = variant;
    match variant.b {
        Major::Inner => [variant.depth(), tile.columns / tile.cluster],
        Major::Outer => [SLAB, variant.depth() / tile.cluster],
    }
}
