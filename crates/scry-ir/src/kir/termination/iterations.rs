//! An upper bound of the iterations of all loops of a kernel together.

use super::Loop;
use crate::kir::{Kir, Stmt};

/// Maximum number of loops that are examined: a kernel with more has no known bound.
const MAX_LOOPS: usize = 256;

/// Returns an upper bound of the iterations that all loops of an invocation execute together,
/// including those that only evaluate the exit condition; `None` if none is known.
///
/// It also holds for invocations in lockstep: each time they enter a loop together, they iterate as
/// often as the one with the most iterations, to which the bound applies.
pub(crate) fn most_iterations(kir: &Kir) -> Option<u64> {
    let mut loops = MAX_LOOPS;
    block_iterations(kir, &kir.body, &[], &mut loops)
}

/// As [`most_iterations`], for a block. `before` are the statements before it in each enclosing
/// block, up to an enclosing loop; `loops` is the number of loops that may still be examined.
fn block_iterations<'k>(
    kir: &'k Kir,
    block: &'k [Stmt],
    before: &[&'k [Stmt]],
    loops: &mut usize,
) -> Option<u64> {
    let mut sum = 0u64;
    for (at, stmt) in block.iter().enumerate() {
        let outer = || before.iter().copied().chain([&block[..at]]).collect::<Vec<_>>();
        let stmt_iterations = match stmt {
            Stmt::Loop { body, .. } => {
                *loops = loops.checked_sub(1)?;
                // One more only evaluates the exit condition.
                let own = Loop::new(kir, body, &outer()).iterations(true)?.checked_add(1)?;
                let per_iteration = block_iterations(kir, body, &[], loops)?.checked_add(1)?;
                own.checked_mul(per_iteration)?
            }
            Stmt::If { .. } | Stmt::Scope { .. } => {
                let outer = outer();
                stmt.blocks().try_fold(0u64, |sum, inner| {
                    sum.checked_add(block_iterations(kir, inner, &outer, loops)?)
                })?
            }
            _ => 0,
        };
        sum = sum.checked_add(stmt_iterations)?;
    }
    Some(sum)
}
