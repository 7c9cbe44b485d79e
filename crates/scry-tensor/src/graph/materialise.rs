//! Which values are stored in memory, and why: all others are computed where they are used.

use super::fused::Fused;
use super::reason::Reason;

/// Returns why a value that several nodes use is stored; `None` if each computes it.
/// One that is stored for an operation of the kernel library in any case is never computed again.
pub(crate) fn shared(
    fused: &Fused,
    uses: usize,
    is_operand: bool,
    bytes: &dyn Fn(&Fused) -> u64,
) -> Option<Reason> {
    if uses < 2 {
        return None;
    }
    if is_operand {
        return Some(Reason::Shared(uses));
    }
    let (own, operands) = (fused.bytes(), bytes(fused));
    let uses_bytes = uses as u64 * operands;
    let stored_bytes = operands + own + uses as u64 * own;
    let is_cheap = !fused.is_expensive() && uses_bytes <= stored_bytes;
    (!is_cheap).then_some(Reason::Shared(uses))
}

/// Returns why a value is stored before it is broadcast; `None` if it need not be.
pub(crate) fn broadcast(fused: &Fused, count: usize) -> Option<Reason> {
    let own = fused.shape.count().unwrap_or(usize::MAX);
    (own < count && fused.is_expensive()).then_some(Reason::Broadcast)
}

/// The most elements of a small kernel.
const SMALL: usize = 1 << 14;

/// Returns why a piece is stored before others are joined to it; `None` if each element of the
/// result computes it, and selects the result or that of another piece.
pub(crate) fn joined(fused: &Fused, count: usize) -> Option<Reason> {
    let is_cheap = count <= SMALL && !fused.is_expensive_if_small();
    if is_cheap { None } else { broadcast(fused, count) }
}
