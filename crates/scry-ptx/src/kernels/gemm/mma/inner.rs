//! The main loop over K: loads fragments from shared memory into registers, and multiplies them.

use super::stage::{Copier, OperandLayout};
use super::tile::MmaTile;
use crate::asm::Opcode;
use crate::kernels::gemm::multistage::StageCursor;
use crate::typed::hopper::MmaType;
use crate::typed::{KernelBuilder, Ptr, Shared, Val, Var};

/// A warp's share of an operand in a stage.
pub(super) struct Side<'k> {
    pub k: &'k KernelBuilder,
    pub layout: OperandLayout,
    /// Whether it is the left operand, `a`.
    pub is_a: bool,
    /// Bytes from one row to the next in a stage.
    pub pitch: u32,
    /// Address of the operand in the first stage.
    pub first: Ptr<'k, Shared, u8>,
    /// The warp's first row or column in the tile.
    pub start: Val<'k, u32>,
    /// Number of fragments of 16 rows or columns.
    pub count: u32,
}

/// A fragment: 16 rows or columns of an operand at one K step, in four registers. There is a
/// register for each of two octets (8 rows or columns) and each of two halves of the K step. In `a`
/// the two octets of a half are adjacent, in `b` the two halves of an octet, so that two registers
/// of `b` are an instruction's operand.
type Fragment<'k> = [Val<'k, u32>; 4];

impl<'k> Side<'k> {
    /// Loads all fragments at a K step, from the stage at byte offset `stage`.
    fn read(&self, stage: Val<'k, u32>, step: u32) -> Vec<Fragment<'k>> {
        let stage = self.first.plus_bytes(stage);
        // `ldmatrix` transposes 16-bit elements only.
        let by_scalars = !self.layout.k_major && self.layout.size == 4;
        let one = |nth: u32| match by_scalars {
            true => self.load_scalars(stage, 16 * nth, step),
            false => self.load_ldmatrix(stage, 16 * nth, step),
        };
        (0..self.count).map(one).collect()
    }

    /// Loads a fragment with `ldmatrix`: four 8 × 8 matrices, whose row addresses the lanes
    /// provide. `side` is the offset of the fragment along M or N.
    fn load_ldmatrix(&self, stage: Ptr<'k, Shared, u8>, side: u32, step: u32) -> Fragment<'k> {
        let lane = self.k.lane();
        let (line, chunk) = match self.is_a == self.layout.k_major {
            true => (lane & 15, lane >> 4),
            false => ((lane & 7) | (lane >> 1 & 8), lane >> 3 & 1),
        };
        // The address of the first fragment; because of the swizzle, those of the others along the
        // contiguous dimension differ from it by an XOR.
        if self.layout.k_major {
            let line = self.start + line;
            let at = line.mul_add(self.pitch, self.layout.swizzle(chunk, line, self.pitch) * 16);
            let first = stage.plus_bytes(at).to_bits() ^ (32 * step);
            self.k.ldmatrix(Ptr::<Shared, u8>::from_bits(first).offset((side * self.pitch).into()))
        } else {
            let chunk = self.start / 8 + chunk;
            let at = line.mul_add(self.pitch, self.layout.swizzle(chunk, line, self.pitch) * 16);
            let first = stage.plus_bytes(at).to_bits() ^ (2 * side);
            let first = Ptr::<Shared, u8>::from_bits(first);
            self.k.ldmatrix_trans(first.offset((16 * step * self.pitch).into()))
        }
    }

    /// Loads a fragment word by word, from rows that are strided along K.
    fn load_scalars(&self, stage: Ptr<'k, Shared, u8>, side: u32, step: u32) -> Fragment<'k> {
        let lane = self.k.lane();
        let at = (lane % 4).mul_add(self.pitch, (self.start + lane / 4) * 4);
        let first = stage.plus_bytes(at).cast::<u32>().at(side);
        let word = |octet: u32, half: u32| {
            first.at(8 * octet).offset(((8 * step + 4 * half) * self.pitch).into()).load()
        };
        match self.is_a {
            true => [word(0, 0), word(1, 0), word(0, 1), word(1, 1)],
            false => [word(0, 0), word(0, 1), word(1, 0), word(1, 1)],
        }
    }
}

/// Writes a block's code for its tile.
pub(super) struct Block<'k> {
    pub k: &'k KernelBuilder,
    pub tile: MmaTile,
    pub mma_type: MmaType,
    pub copiers: [Copier<'k>; 2],
    pub sides: [Side<'k>; 2],
    pub stages: Ptr<'k, Shared, u8>,
    /// Accumulators: for every 16 rows of the warp, and in them every 8 columns, a lane's four.
    pub accumulators: Vec<[Var<'k, f32>; 4]>,
    pub cursor: StageCursor<'k>,
}

/// The operands of a warp at one K step.
type Fragments<'k> = [Vec<Fragment<'k>>; 2];
/// Fragments in variables, which keep them from one iteration over K to the next.
type Current<'k> = [Vec<[Var<'k, u32>; 4]>; 2];

impl<'k> Block<'k> {
    /// Accumulates over the whole K.
    pub(super) fn run(&self, k_dim: Val<'k, u32>) {
        let (k, ahead) = (self.k, self.tile.stages - 1);
        for stage in 0..ahead {
            self.copy(self.stages.offset((stage * self.cursor.stage_bytes).into()));
            k.cp_async_commit_group();
        }
        k.cp_async_wait_group(ahead - 1);
        k.sync();
        let current =
            self.read(0).map(|side| side.into_iter().map(|f| f.map(|x| k.var(x))).collect());
        let steps = (k_dim + (self.k_dim() - 1)) / self.k_dim();
        k.for_range(0, steps, 1, |_| self.step(&current));
        k.cp_async_wait_group(0);
    }

    /// Elements along K per stage.
    fn k_dim(&self) -> u32 {
        self.sides[0].layout.k_dim()
    }

    fn copy(&self, stage: Ptr<'k, Shared, u8>) {
        self.copiers.iter().for_each(|copier| copier.copy(stage));
    }

    /// Multiplies a stage, whose first fragments are in `current`, and starts the copies of another
    /// one. Afterwards `current` holds the first fragments of the next stage.
    fn step(&self, current: &Current<'k>) {
        let steps = self.k_dim() / self.mma_type.k_dim();
        let mut fragments: Fragments<'k> =
            current.each_ref().map(|side| side.iter().map(|f| f.map(Var::get)).collect());
        for nth in 0..steps {
            if nth + 1 == steps {
                self.cursor.advance();
            }
            let next = self.read((nth + 1) % steps);
            self.multiply(&fragments);
            if nth == 0 {
                self.copy(self.stages.plus_bytes(self.cursor.copy_stage.get()));
            }
            fragments = next;
        }
        let all = current.iter().flatten().flatten().zip(fragments.iter().flatten().flatten());
        all.for_each(|(current, next)| current.set(*next));
    }

    fn read(&self, step: u32) -> Fragments<'k> {
        let read = |side: &Side<'k>| side.read(self.cursor.compute_stage.get(), step);
        let fragments = self.sides.each_ref().map(read);
        match self.mma_type {
            MmaType::Tf32 => {
                fragments.map(|side| side.into_iter().map(|f| f.map(round_to_tf32)).collect())
            }
            _ => fragments,
        }
    }

    fn multiply(&self, [left, right]: &Fragments<'k>) {
        for (row, left) in left.iter().enumerate() {
            for column in 0..2 * right.len() {
                let right = right[column / 2];
                let octet =
                    if column % 2 == 0 { [right[0], right[1]] } else { [right[2], right[3]] };
                let accumulators =
                    &self.accumulators[row * 2 * self.sides[1].count as usize + column];
                self.k.mma(self.mma_type, accumulators, *left, octet);
            }
        }
    }
}

/// Rounds `f32` to TF32, to nearest.
fn round_to_tf32(value: Val<'_, u32>) -> Val<'_, u32> {
    value.builder().op(Opcode::new("cvt.rna.tf32.f32"), &[value.reg().into()])
}
