//! Chains of multiply-adds, in one pass with the intermediate results in vector registers.

use super::frame::{Frame, Lanes};
use super::stream::{CommonStrides, StridedWords};
use crate::code::{Access, Chain, ChainEnd, Operand, Stream};
use crate::lanes::{Bits, IsaLevel, Src};
use crate::strided::{Words, fold};

/// Maximum number of stages of a chain.
pub(crate) const MOST: usize = 5;

/// The addend of the first stage, and the loaded operand of each stage.
const INPUTS: usize = MOST + 1;

impl Frame<'_> {
    /// Computes as many contiguous blocks as possible in one pass, and the rest stage by stage.
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
            chain.stages.iter().for_each(|stage| self.stream(stage));
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
        let mut lines = [const { StridedWords::Lanes(Src { start: 0, step: 1 }) }; INPUTS];
        let mut factors = [0.0; MOST];
        let mut used = 1;
        let Some(line) = self.operand_words(&chain.stages[0].operands[2]) else { return first };
        lines[0] = line;
        for (nth, stage) in chain.stages.iter().enumerate() {
            factors[nth] = self.factor(stage);
            let input = match chain.end {
                ChainEnd::Scaled if nth + 1 == count => continue,
                ChainEnd::Factor if nth + 1 == count => &stage.operands[2],
                _ => &stage.operands[0],
            };
            let Some(line) = self.operand_words(input) else { return first };
            lines[used] = line;
            used += 1;
        }
        let lines = &lines[..used];
        if target.is_shared() || lines.iter().any(StridedWords::is_shared) {
            return first;
        }
        let mut all = [&target; INPUTS + 1];
        for (to, line) in all.iter_mut().zip(lines) {
            *to = line;
        }
        let powers = CommonStrides::of(&all);
        let mut block = first;
        while block < self.lanes.end {
            let grid = powers.grid(block, self.lanes.end);
            let words = |line| {
                let words = self.words(line, block, powers.blocks, grid)?;
                words.is_run(grid).then_some(words)
            };
            let Some(d) = words(&target) else { break };
            let mut inputs = [d; INPUTS];
            for (input, line) in inputs.iter_mut().zip(lines) {
                let Some(words) = words(line) else { return block };
                *input = words;
            }
            pass(chain, &inputs, &factors, d, &f);
            block += grid.rows * grid.blocks;
        }
        block
    }

    /// The factor of a stage, which is the same for all lanes.
    #[inline(always)]
    fn factor(&self, stage: &Stream) -> f32 {
        let sign = u32::from(stage.negated[0]) << 31;
        match stage.operands[1] {
            Operand::Lanes(Src { start, .. }) => {
                f32::from_bits(u32::file(self.files())[start as usize].get()[0] ^ sign)
            }
            Operand::Memory(_) => unreachable!("factors of chains are in registers"),
        }
    }
}

/// Computes a grid of blocks in one pass.
#[inline(always)]
fn pass(
    chain: &Chain,
    inputs: &[Words<'_>; INPUTS],
    y: &[f32; MOST],
    d: Words<'_>,
    f: &impl Fn(f32, f32, f32) -> f32,
) {
    let [c, x @ ..] = *inputs;
    let count = chain.stages.len();
    // The factor and the input of the last stage, which may differ from the others.
    let (factor, end) = (y[count - 1], x[count - 1]);
    let t = [(x[0], y[0]), (x[1], y[1]), (x[2], y[2]), (x[3], y[3]), (x[4], y[4])];
    let terms = |sum: f32, _| sum;
    let multiplied = |sum: f32, x: f32| f(sum, factor, x);
    let scaled = |sum: f32, _| sum * factor;
    match (chain.end, count) {
        (ChainEnd::Term, 2) => fold([c, d], [t[0], t[1]], f, None, terms),
        (ChainEnd::Term, 3) => fold([c, d], [t[0], t[1], t[2]], f, None, terms),
        (ChainEnd::Term, 4) => fold([c, d], [t[0], t[1], t[2], t[3]], f, None, terms),
        (ChainEnd::Term, _) => fold([c, d], t, f, None, terms),
        (ChainEnd::Factor, 2) => fold([c, d], [t[0]], f, Some(end), multiplied),
        (ChainEnd::Factor, 3) => fold([c, d], [t[0], t[1]], f, Some(end), multiplied),
        (ChainEnd::Factor, 4) => fold([c, d], [t[0], t[1], t[2]], f, Some(end), multiplied),
        (ChainEnd::Factor, _) => fold([c, d], [t[0], t[1], t[2], t[3]], f, Some(end), multiplied),
        (ChainEnd::Scaled, 2) => fold([c, d], [t[0]], f, None, scaled),
        (ChainEnd::Scaled, 3) => fold([c, d], [t[0], t[1]], f, None, scaled),
        (ChainEnd::Scaled, 4) => fold([c, d], [t[0], t[1], t[2]], f, None, scaled),
        (ChainEnd::Scaled, _) => fold([c, d], [t[0], t[1], t[2], t[3]], f, None, scaled),
    }
}

/// The same, compiled for AVX2. Callers must check that the CPU supports it.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{Access, Chain, Frame};

    // SAFETY: the caller has checked that the CPU has the features.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn chain(frame: &Frame<'_>, chain: &Chain, store: Option<&Access>) -> usize {
        frame.chain_with(chain, store, f32::mul_add)
    }
}
