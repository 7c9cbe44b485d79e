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
