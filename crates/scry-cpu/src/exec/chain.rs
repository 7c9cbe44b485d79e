//! Chains of multiply-adds, in one pass with the intermediate results in vector registers.

use super::frame::{Frame, Lanes};
use super::memory_mul_add::{CommonStrides, StridedWords};
use crate::code::{Access, Chain, ChainEnd, MemoryMulAdd, Operand};
use crate::lanes::{Bits, IsaLevel, Src};
use crate::strided::{Words, accumulate};

/// Maximum number of stages of a chain.
pub(crate) const MAX_STAGES: usize = 5;

/// Maximum number of inputs: the addend of the first stage, and the varying operand of each stage.
const MAX_INPUTS: usize = MAX_STAGES + 1;

impl Frame<'_> {
    /// Computes as many contiguous blocks as possible in one pass, and the others stage by stage.
    pub(super) fn chain(&mut self, chain: &Chain) {
        let lanes = self.lanes;
        let store = chain.stages.last().and_then(|stage| stage.store.as_ref());
        // Results in memory that other threads may access are stored from the result's register.
        let direct = store.filter(|store| lanes.dense && self.is_plain(store));
        let end = match self.isa {
            IsaLevel::Base => self.chain_with(chain, direct, |a, b, c| a * b + c),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2` is only constructed if the CPU has the features.
            IsaLevel::Avx2 => unsafe { avx2::chain(self, chain, direct) },
        };
        if let Some(store) = store.filter(|_| direct.is_none()) {
            self.lanes.end = end;
            self.store(store);
        }
        self.lanes = Lanes { first: end, ..lanes };
        if end < lanes.end {
            chain.stages.iter().for_each(|stage| self.memory_mul_add(stage));
        }
        self.lanes = lanes;
    }

    /// Computes blocks up to the first one that is not contiguous. Results go to the target of
    /// `store`, or without one to their register. Returns the first block that was not computed.
    #[inline(always)]
    fn chain_with(
        &self,
        chain: &Chain,
        store: Option<&Access>,
        f: impl Fn(f32, f32, f32) -> f32,
    ) -> usize {
        let first = self.lanes.first;
        let count = chain.stages.len();
        let target = match store {
            None => Some(StridedWords::Lanes(Src { start: chain.stages[count - 1].d, step: 1 })),
            Some(access) => self.strided_words(access),
        };
        let Some(target) = target else { return first };
        let mut sources = [const { StridedWords::Lanes(Src { start: 0, step: 1 }) }; MAX_INPUTS];
        let mut factors = [0.0; MAX_STAGES];
        let mut used = 1;
        let Some(source) = self.operand_words(&chain.stages[0].operands[2]) else { return first };
        sources[0] = source;
        for (nth, stage) in chain.stages.iter().enumerate() {
            factors[nth] = self.uniform_operand(stage);
            let input = match chain.end {
                ChainEnd::Scaled if nth + 1 == count => continue,
                ChainEnd::Factor if nth + 1 == count => &stage.operands[2],
                _ => &stage.operands[0],
            };
            let Some(source) = self.operand_words(input) else { return first };
            sources[used] = source;
            used += 1;
        }
        let sources = &sources[..used];
        if target.is_broadcast() || sources.iter().any(StridedWords::is_broadcast) {
            return first;
        }
        let mut all = [&target; MAX_INPUTS + 1];
        for (to, source) in all.iter_mut().zip(sources) {
            *to = source;
        }
        let common = CommonStrides::new(&all);
        let mut block = first;
        while block < self.lanes.end {
            let grid = common.grid(block, self.lanes.end);
            let words = |source| {
                let words = self.words(source, block, common.blocks, grid)?;
                words.is_contiguous(grid).then_some(words)
            };
            let Some(d) = words(&target) else { break };
            let mut inputs = [d; MAX_INPUTS];
            for (input, source) in inputs.iter_mut().zip(sources) {
                let Some(words) = words(source) else { return block };
                *input = words;
            }
            compute_grid(chain, &inputs, &factors, d, &f);
            block += grid.rows * grid.blocks;
        }
        block
    }

    /// Returns the operand `b` of a stage, which is the same for all lanes; negated if the product
    /// of the stage is.
    #[inline(always)]
    fn uniform_operand(&self, stage: &MemoryMulAdd) -> f32 {
        let sign = u32::from(stage.negated[0]) << 31;
        match stage.operands[1] {
            Operand::Lanes(Src { start, .. }) => {
                f32::from_bits(u32::file(self.files())[start as usize].get()[0] ^ sign)
            }
            Operand::Memory(_) => unreachable!("uniform operands of chains are in registers"),
        }
    }
}

/// Computes a grid of blocks in one pass.
#[inline(always)]
fn compute_grid(
    chain: &Chain,
    inputs: &[Words<'_>; MAX_INPUTS],
    factors: &[f32; MAX_STAGES],
    d: Words<'_>,
    f: &impl Fn(f32, f32, f32) -> f32,
) {
    let [c, x @ ..] = *inputs;
    let count = chain.stages.len();
    // The factor and the input of the last stage, which may differ from the others.
    let (factor, end) = (factors[count - 1], x[count - 1]);
    let t = [
        (x[0], factors[0]),
        (x[1], factors[1]),
        (x[2], factors[2]),
        (x[3], factors[3]),
        (x[4], factors[4]),
    ];
    let unchanged = |sum: f32, _| sum;
    let multiply_add = |sum: f32, x: f32| f(sum, factor, x);
    let scale = |sum: f32, _| sum * factor;
    match (chain.end, count) {
        (ChainEnd::Addend, 2) => accumulate([c, d], [t[0], t[1]], f, None, unchanged),
        (ChainEnd::Addend, 3) => accumulate([c, d], [t[0], t[1], t[2]], f, None, unchanged),
        (ChainEnd::Addend, 4) => accumulate([c, d], [t[0], t[1], t[2], t[3]], f, None, unchanged),
        (ChainEnd::Addend, _) => accumulate([c, d], t, f, None, unchanged),
        (ChainEnd::Factor, 2) => accumulate([c, d], [t[0]], f, Some(end), multiply_add),
        (ChainEnd::Factor, 3) => accumulate([c, d], [t[0], t[1]], f, Some(end), multiply_add),
        (ChainEnd::Factor, 4) => accumulate([c, d], [t[0], t[1], t[2]], f, Some(end), multiply_add),
        (ChainEnd::Factor, _) => {
            accumulate([c, d], [t[0], t[1], t[2], t[3]], f, Some(end), multiply_add)
        }
        (ChainEnd::Scaled, 2) => accumulate([c, d], [t[0]], f, None, scale),
        (ChainEnd::Scaled, 3) => accumulate([c, d], [t[0], t[1]], f, None, scale),
        (ChainEnd::Scaled, 4) => accumulate([c, d], [t[0], t[1], t[2]], f, None, scale),
        (ChainEnd::Scaled, _) => accumulate([c, d], [t[0], t[1], t[2], t[3]], f, None, scale),
    }
}

/// [`Frame::chain_with`], compiled for AVX2. Callers must check that the CPU supports it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Access, Chain, Frame};

    // SAFETY: the caller has checked that the CPU has the features.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn chain(frame: &Frame<'_>, chain: &Chain, store: Option<&Access>) -> usize {
        frame.chain_with(chain, store, f32::mul_add)
    }
}
