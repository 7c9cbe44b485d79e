//! From one type to another.

use scry_ir::kir::{Type, Value};

use super::Lowering;
use crate::types::Operand;

impl Lowering<'_> {
    /// The same number as another type.
    pub(super) fn convert(&mut self, ty: Type, a: Value) -> Operand {
        let _ = (ty, a);
        todo!()
    }

    /// The same bits as another type of the same size: registers have no types.
    pub(super) fn bitcast(&mut self, ty: Type, a: Value) -> Operand {
        let _ = ty;
        self.value(a)
    }
}
