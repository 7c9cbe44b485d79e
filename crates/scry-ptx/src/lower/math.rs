//! Functions of floats.

use scry_ir::kir::{BinaryOp, UnaryOp, Value};

use super::Lowering;
use crate::types::Reg;

impl Lowering<'_> {
    /// A function of a float.
    pub(super) fn float_function(&mut self, op: UnaryOp, a: Value) -> Reg {
        let _ = (op, a);
        todo!()
    }

    /// A function of two floats, or of a float and an exponent.
    pub(super) fn float_function_of_two(&mut self, op: BinaryOp, a: Value, b: Value) -> Reg {
        let _ = (op, a, b);
        todo!()
    }
}
