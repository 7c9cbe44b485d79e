//! Whether a kernel has 16-bit floats.

use crate::kir::{Inst, Kir, Stmt, Type, Value, for_each_stmt};

/// Whether the kernel computes with 16-bit floats, rather than only packing them.
pub(super) fn needs_f16(kir: &Kir) -> bool {
    let is_half = |value: Value| kir.ty(value) == Type::F16;
    let mut needed = kir.workgroup.iter().chain(&kir.locals).any(|array| array.ty == Type::F16);
    for_each_stmt(&kir.body, &mut |stmt| {
        if matches!(stmt, Stmt::Store { .. }) {
            stmt.for_each_operand(|value| needed |= is_half(value));
        }
    });
    needed
        || kir.values.iter().any(|definition| match definition.inst {
            Inst::Const(_) | Inst::Get(_) | Inst::Select(..) | Inst::Bitcast(_) => false,
            Inst::Convert(a) if definition.ty == Type::F16 => kir.ty(a) != Type::F32,
            Inst::Convert(a) if is_half(a) => definition.ty != Type::F32,
            ref inst => {
                let mut half = definition.ty == Type::F16;
                inst.for_each_operand(|operand| half |= is_half(operand));
                half
            }
        })
}
