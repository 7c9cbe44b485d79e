//! Finds out whether a kernel needs a device with 16-bit floats.
//!
//! The packing functions of WGSL convert to `F16` and `U16` also in kernels that do not enable
//! `f16`, on devices without 16-bit types. Code generators then represent an `F16` or `U16` by a
//! 32-bit word whose upper half is zero.

use super::{Inst, Kir, Stmt, Type, Value, for_each_stmt};

/// Returns whether the kernel computes with 16-bit floats: false if it only packs or unpacks them.
pub(crate) fn needs_f16(kir: &Kir) -> bool {
    let is_f16 = |value: Value| kir.ty(value) == Type::F16;
    let mut needed = kir.workgroup.iter().chain(&kir.locals).any(|array| array.ty == Type::F16);
    for_each_stmt(&kir.body, &mut |stmt| {
        if matches!(stmt, Stmt::Store { .. }) {
            stmt.for_each_operand(|value| needed |= is_f16(value));
        }
    });
    needed
        || kir.values.iter().any(|definition| match definition.inst {
            Inst::Const(_) | Inst::Get(_) | Inst::Select(..) | Inst::Bitcast(_) => false,
            // Packing and unpacking convert from and to `F32`.
            Inst::Convert(a) if definition.ty == Type::F16 => kir.ty(a) != Type::F32,
            Inst::Convert(a) if is_f16(a) => definition.ty != Type::F32,
            ref inst => {
                let mut computes_f16 = definition.ty == Type::F16;
                inst.for_each_operand(|operand| computes_f16 |= is_f16(operand));
                computes_f16
            }
        })
}
