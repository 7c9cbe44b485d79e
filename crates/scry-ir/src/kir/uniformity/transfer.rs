//! Transfer functions: the class of an instruction's result from the classes of its operands.

use super::Lanes;
use super::Variability::{self, Affine, Uniform, Varying};
use crate::kir::{AddressSpace, BinaryOp, Builtin, Inst, Kir, Place, Type, UnaryOp, Value, Var};

/// The uniformity as currently known.
pub(super) struct KnownUniformity {
    pub(super) values: Vec<Variability>,
    pub(super) vars: Vec<Variability>,
    pub(super) lanes: Lanes,
}

impl KnownUniformity {
    /// Returns the class of a value.
    pub(super) fn value(&self, value: Value) -> Variability {
        self.values[value.index()]
    }

    /// Returns the class of a variable.
    pub(super) fn var(&self, var: Var) -> Variability {
        self.vars[var.index()]
    }
}

/// The class of a value, by the instruction that computes it.
pub(super) fn class(kir: &Kir, value: Value, known: &KnownUniformity) -> Variability {
    let of = |value: Value| known.value(value);
    let ty = kir.ty(value);
    match kir.inst(value) {
        Inst::Const(_) | Inst::ArrayLength { .. } => Uniform,
        Inst::Builtin(Builtin::GroupId(0)) => known.lanes.group,
        Inst::Builtin(Builtin::SubgroupId) => known.lanes.subgroup,
        Inst::Builtin(builtin) => of_builtin(*builtin),
        Inst::Unary(UnaryOp::Neg | UnaryOp::Not, a) => linear(ty, of(*a)),
        Inst::Unary(_, a) => opaque(of(*a)),
        Inst::Binary(op, a, b) => of_binary(*op, ty, of(*a), of(*b)),
        Inst::Fma(a, b, c) => opaque(of(*a).max(of(*b)).max(of(*c))),
        Inst::Select(condition, a, b) => match of(*condition) {
            Uniform => linear(ty, of(*a).max(of(*b))),
            Affine | Varying => Varying,
        },
        Inst::Convert(a) | Inst::Bitcast(a) => linear(ty, of(*a)),
        Inst::Get(var) => known.var(*var),
        Inst::Load { place, .. } => of_load(kir, place, known),
        // The barriers around it exclude races.
        Inst::WorkgroupUniformLoad { .. } if known.lanes.group != Uniform => Varying,
        Inst::WorkgroupUniformLoad { place, .. } => opaque(place.index.map_or(Uniform, of)),
        Inst::Extra(first, _) => of(*first),
        Inst::Atomic { .. }
        | Inst::Subgroup(_)
        | Inst::MatrixFill(_)
        | Inst::MatrixLoad(_)
        | Inst::MultiplyAdd(..)
        | Inst::MultiplyFragments { .. } => Varying,
    }
}

fn of_builtin(builtin: Builtin) -> Variability {
    match builtin {
        Builtin::LocalId(_) => Affine,
        Builtin::SubgroupLane | Builtin::SubgroupId => Varying,
        Builtin::GroupId(_)
        | Builtin::GroupCount(_)
        | Builtin::SubgroupSize
        | Builtin::SubgroupCount => Uniform,
    }
}

fn of_binary(op: BinaryOp, ty: Type, a: Variability, b: Variability) -> Variability {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => linear(ty, a.max(b)),
        BinaryOp::Mul if a.min(b) == Uniform => linear(ty, a.max(b)),
        BinaryOp::Shl if b == Uniform => linear(ty, a),
        _ => opaque(a.max(b)),
    }
}

fn of_load(kir: &Kir, place: &Place, known: &KnownUniformity) -> Variability {
    match place.space {
        AddressSpace::Local(_) => Varying,
        AddressSpace::Workgroup(_) if !known.lanes.lockstep => Varying,
        AddressSpace::Binding(nth)
            if !known.lanes.lockstep && kir.buffers[nth as usize].writable =>
        {
            Varying
        }
        // Each workgroup has its own memory.
        AddressSpace::Workgroup(_) if known.lanes.group != Uniform => Varying,
        AddressSpace::Binding(_) | AddressSpace::Immediate | AddressSpace::Workgroup(_) => {
            opaque(place.index.map_or(Uniform, |index| known.value(index)))
        }
    }
}

/// The class of a result that is affine for affine operands of 32 bits. `operands` is the maximum
/// class of the operands.
fn linear(ty: Type, operands: Variability) -> Variability {
    if matches!(ty, Type::I32 | Type::U32) { operands } else { opaque(operands) }
}

/// The class of any other result.
fn opaque(operands: Variability) -> Variability {
    if operands == Uniform { Uniform } else { Varying }
}
