//! Comparisons and `select`.

use scry_ir::kir::{BinaryOp, Type, Value};

use super::{Lowering, ptx_type};
use crate::types::{PtxType, Reg};

impl Lowering<'_> {
    /// Lowers a comparison, or its negation if `holds` is false. Comparisons with NaN are false,
    /// except `!=`. The negation of a float comparison is therefore the unordered form of the
    /// opposite one: that of `<` is `geu`.
    pub(super) fn comparison(&mut self, op: BinaryOp, a: Value, b: Value, holds: bool) -> Reg {
        let ty = ptx_type(self.ty(a));
        if ty == PtxType::Pred {
            return self.compare_bools(a, b, (op == BinaryOp::Eq) == holds);
        }
        let name = comparison_name(op, holds, self.ty(a).is_float());
        let (a, b) = (self.value(a), self.value(b));
        self.b.compare(name, ty, a, b)
    }

    /// Compares two bools for equality or inequality.
    fn compare_bools(&mut self, a: Value, b: Value, equal: bool) -> Reg {
        let (a, b) = (self.value(a), self.value(b));
        let differ = self.b.typed("xor", PtxType::Pred, &[a, b]);
        if equal { self.b.typed("not", PtxType::Pred, &[differ.into()]) } else { differ }
    }

    /// Lowers `select`.
    pub(super) fn select(&mut self, ty: Type, condition: Value, a: Value, b: Value) -> Reg {
        let pred = self.reg(condition);
        let (a, b) = (self.value(a), self.value(b));
        if ty != Type::Bool {
            return self.b.select(ptx_type(ty), pred, a, b);
        }
        let not = self.b.typed("not", PtxType::Pred, &[pred.into()]);
        let if_true = self.b.typed("and", PtxType::Pred, &[pred.into(), a]);
        let if_false = self.b.typed("and", PtxType::Pred, &[not.into(), b]);
        self.b.typed("or", PtxType::Pred, &[if_true.into(), if_false.into()])
    }
}

/// Returns the name of a comparison in `setp`, or that of its negation if `holds` is false.
fn comparison_name(op: BinaryOp, holds: bool, is_float: bool) -> &'static str {
    let (name, opposite, opposite_or_nan) = match op {
        BinaryOp::Eq => ("eq", "ne", "neu"),
        BinaryOp::Ne => ("ne", "eq", "eq"),
        BinaryOp::Lt => ("lt", "ge", "geu"),
        BinaryOp::Le => ("le", "gt", "gtu"),
        BinaryOp::Gt => ("gt", "le", "leu"),
        _ => ("ge", "lt", "ltu"),
    };
    match (holds, is_float) {
        (true, true) if op == BinaryOp::Ne => "neu",
        (true, _) => name,
        (false, true) => opposite_or_nan,
        (false, false) => opposite,
    }
}
