//! Atomics.

use scry_ir::kir::{AtomicOp, Place, Value};

use super::Lowering;
use crate::types::Reg;

impl Lowering<'_> {
    /// Changes memory as one step; gives what was there before.
    pub(super) fn atomic(
        &mut self,
        value: Value,
        op: AtomicOp,
        place: &Place,
        operand: Option<Value>,
        compare: Option<Value>,
    ) -> Reg {
        let _ = (value, op, place, operand, compare);
        todo!()
    }
}
