//! How many iterations the loops of a kernel make at most, all together.

use naga::{Block, Function, Module, Statement};

use super::progress::{Counter, Keep, Range, Step};
use super::{Loop, Prover};

/// Loops of a kernel that are looked at: a kernel with more is taken to iterate without limit.
const MOST_LOOPS: usize = 256;

/// Iterations by which a counter that is multiplied, divided or shifted has left its type.
const BITS: u64 = 64;

/// The most iterations that the loops of an invocation make in all, those of called functions with
/// each call, the one that only finds that a loop is over included; `None` if that is not known.
///
/// It also bounds what a group of invocations makes that run in lockstep: each entry of a loop
/// takes as many iterations as that invocation which takes most.
pub(crate) fn most_iterations(module: &Module) -> Option<u64> {
    let mut functions: Vec<Option<u64>> = Vec::with_capacity(module.functions.len());
    let mut left = MOST_LOOPS;
    for (_, function) in module.functions.iter() {
        let most = count(module, function, None, &functions, &mut left);
        functions.push(most);
    }
    let entry = module.entry_points.first()?;
    count(module, &entry.function, Some(entry.workgroup_size), &functions, &mut left)
}

fn count(
    module: &Module,
    function: &Function,
    kernel: Option<[u32; 3]>,
    functions: &[Option<u64>],
    left: &mut usize,
) -> Option<u64> {
    let prover = Prover { module, function, kernel, counts: true };
    Count { prover, functions, left }.block(&function.body, false)
}

struct Count<'a, 'c> {
    prover: Prover<'a>,
    /// What the functions before this one make.
    functions: &'c [Option<u64>],
    left: &'c mut usize,
}

impl<'a> Count<'a, '_> {
    fn block(&mut self, block: &'a Block, nested: bool) -> Option<u64> {
        let mut sum = 0u64;
        for (at, statement) in block.iter().enumerate() {
            let most = match statement {
                Statement::Block(inner) => self.block(inner, nested)?,
                Statement::If { accept, reject, .. } => {
                    let accept = self.block(accept, nested)?;
                    accept.checked_add(self.block(reject, nested)?)?
                }
                Statement::Switch { cases, .. } => cases
                    .iter()
                    .try_fold(0u64, |sum, case| sum.checked_add(self.block(&case.body, nested)?))?,
                Statement::Loop { body, continuing, break_if } => {
                    *self.left = self.left.checked_sub(1)?;
                    let before = &block[..at];
                    let this = Loop { body, continuing, break_if: *break_if, before, nested };
                    let turns = self.prover.turns(&this)?.checked_add(1)?;
                    let inside = self.block(body, true)?;
                    let inside = inside.checked_add(self.block(continuing, true)?)?;
                    turns.checked_mul(inside.checked_add(1)?)?
                }
                Statement::Call { function, .. } => {
                    *self.functions.get(function.index())?.as_ref()?
                }
                _ => 0,
            };
            sum = sum.checked_add(most)?;
        }
        Some(sum)
    }
}

impl Counter {
    /// The most iterations of a loop that [`Counter::ends`] by this test; `None` if it may be any
    /// number.
    pub(super) fn turns(self, keep: Keep, bound: Range) -> Option<u64> {
        let least = self.start.unwrap_or(self.all.min);
        let greatest = self.start.unwrap_or(self.all.max);
        let (distance, step) = match (self.step, keep) {
            (Step::Add(step), Keep::Less) => (bound.max - least, step),
            (Step::Add(step), Keep::LessEqual) => (bound.max - least + 1, step),
            (Step::Add(step), Keep::Greater) => (greatest - bound.min, -step),
            (Step::Add(step), Keep::GreaterEqual) => (greatest - bound.min + 1, -step),
            (Step::Add(step), Keep::NotEqual) => {
                let start = self.start.filter(|_| bound.min == bound.max)?;
                // Away from the bound it comes by every other value first.
                (Some((bound.min - start) * step.signum()).filter(|distance| *distance >= 0)?, 1)
            }
            (Step::Stride, _) => (bound.max + 1, 1),
            (Step::Multiply(_) | Step::Divide | Step::ShiftRight, _) => return Some(BITS),
        };
        let distance = u64::try_from(distance.max(0)).ok()?;
        Some(distance.div_ceil(u64::try_from(step).ok().filter(|step| *step > 0)?))
    }
}
