//! An upper bound of the iterations of all loops of a kernel.

use super::Loop;
use crate::kir::{Kir, Stmt};

/// Maximum loops that are examined: a kernel with more has no known bound.
const MAX_LOOPS: usize = 256;

/// Returns an upper bound of the iterations that all loops of an invocation execute together,
/// including those that only evaluate the exit condition; `None` if none is known.
///
/// It also bounds a group of invocations in lockstep: an entry of a loop iterates as often as the
/// invocation with the most iterations.
pub(crate) fn most_iterations(kir: &Kir) -> Option<u64> {
    let mut loops = MAX_LOOPS;
    block_iterations(kir, &kir.body, &[], &mut loops)
}

/// As [`most_iterations`], of a block. `before` are the statements before its parents.
fn block_iterations<'k>(
    kir: &'k Kir,
    block: &'k [Stmt],
    before: &[&'k [Stmt]],
    loops: &mut usize,
) -> Option<u64> {
    let mut sum = 0u64;
    for (at, stmt) in block.iter().enumerate() {
        let outer = || before.iter().copied().chain([&block[..at]]).collect::<Vec<_>>();
        let most = match stmt {
            Stmt::Loop { body, .. } => {
                *loops = loops.checked_sub(1)?;
                let own = Loop::new(kir, body, &outer()).iterations(true)?.checked_add(1)?;
                let inner = block_iterations(kir, body, &[], loops)?.checked_add(1)?;
                own.checked_mul(inner)?
            }
            Stmt::If { .. } | Stmt::Scope { .. } => {
                let outer = outer();
                stmt.blocks().try_fold(0u64, |sum, inner| {
                    sum.checked_add(block_iterations(kir, inner, &outer, loops)?)
                })?
            }
            _ => 0,
        };
        sum = sum.checked_add(most)?;
    }
    Some(sum)
}
