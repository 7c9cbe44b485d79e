//! Transfer functions: the variability of an instruction's result from that of its operands.

use super::ComparedInvocations;
use super::Variability::{self, Affine, Uniform, Varying};
use crate::kir::{AddressSpace, BinaryOp, Builtin, Inst, Kir, Place, Type, UnaryOp, Value, Var};

/// The variability so far: a lower bound that the analysis raises.
pub(super) struct CurrentUniformity {
    pub(super) values: Vec<Variability>,
    pub(super) vars: Vec<Variability>,
    pub(super) compared: ComparedInvocations,
}

impl CurrentUniformity {
    /// Returns the variability of a value.
    pub(super) fn value(&self, value: Value) -> Variability {
        self.values[value.index()]
    }

    /// Returns the variability of a variable.
    pub(super) fn var(&self, var: Var) -> Variability {
        self.vars[var.index()]
    }
}

/// Returns the variability of a value, from the instruction that computes it.
pub(super) fn variability(kir: &Kir, value: Value, current: &CurrentUniformity) -> Variability {
    let get = |value: Value| current.value(value);
    let ty = kir.ty(value);
    match kir.inst(value) {
        Inst::Const(_) | Inst::ArrayLength { .. } => Uniform,
        Inst::Builtin(builtin) => builtin_variability(*builtin, current.compared),
        Inst::Unary(UnaryOp::Neg | UnaryOp::Not, a) => affine_or_varying(ty, get(*a)),
        Inst::Unary(_, a) => uniform_or_varying(get(*a)),
        Inst::Binary(op, a, b) => binary_variability(*op, ty, get(*a), get(*b)),
        Inst::Fma(a, b, c) => uniform_or_varying(get(*a).max(get(*b)).max(get(*c))),
        Inst::Select(condition, a, b) => match get(*condition) {
            Uniform => affine_or_varying(ty, get(*a).max(get(*b))),
            Affine | Varying => Varying,
        },
        Inst::Convert(a) | Inst::Bitcast(a) => affine_or_varying(ty, get(*a)),
        Inst::Get(var) => current.var(*var),
        Inst::Load { place, .. } => load_variability(kir, place, current),
        // Each workgroup has its own workgroup memory.
        Inst::WorkgroupUniformLoad { .. } if current.compared.spans_workgroups() => Varying,
        // The barriers around the load exclude races.
        Inst::WorkgroupUniformLoad { place, .. } => {
            uniform_or_varying(place.index.map_or(Uniform, get))
        }
        // Another result of an instruction with several.
        Inst::Extra(first, _) => get(*first),
        Inst::Atomic { .. }
        | Inst::Subgroup(_)
        | Inst::MatrixFill(_)
        | Inst::MatrixLoad(_)
        | Inst::LoadFragment(_)
        | Inst::MultiplyAdd(..)
        | Inst::MultiplyFragments { .. } => Varying,
    }
}

fn builtin_variability(builtin: Builtin, compared: ComparedInvocations) -> Variability {
    match builtin {
        Builtin::LocalId(_) => Affine,
        Builtin::GroupId(0) => compared.group_id_x,
        Builtin::SubgroupId => compared.subgroup_id,
        Builtin::SubgroupLane => Varying,
        Builtin::GroupId(_)
        | Builtin::GroupCount(_)
        | Builtin::SubgroupSize
        | Builtin::SubgroupCount => Uniform,
    }
}

fn binary_variability(op: BinaryOp, ty: Type, a: Variability, b: Variability) -> Variability {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => {
            affine_or_varying(ty, a.max(b))
        }
        BinaryOp::Mul if a.min(b) == Uniform => affine_or_varying(ty, a.max(b)),
        BinaryOp::Shl if b == Uniform => affine_or_varying(ty, a),
        _ => uniform_or_varying(a.max(b)),
    }
}

fn load_variability(kir: &Kir, place: &Place, current: &CurrentUniformity) -> Variability {
    match place.space {
        AddressSpace::Local(_) => Varying,
        AddressSpace::Workgroup(_) if !current.compared.lockstep => Varying,
        AddressSpace::Binding(binding)
            if !current.compared.lockstep && kir.buffers[binding as usize].writable =>
        {
            Varying
        }
        // Each workgroup has its own workgroup memory.
        AddressSpace::Workgroup(_) if current.compared.spans_workgroups() => Varying,
        AddressSpace::Binding(_) | AddressSpace::Immediate | AddressSpace::Workgroup(_) => {
            uniform_or_varying(place.index.map_or(Uniform, |index| current.value(index)))
        }
    }
}

/// Returns the variability of the result of an operation whose 32-bit integer result is classified
/// as [`Affine`](Variability::Affine) if its operands are. `operands` is the maximum variability of
/// the operands.
fn affine_or_varying(ty: Type, operands: Variability) -> Variability {
    if matches!(ty, Type::I32 | Type::U32) { operands } else { uniform_or_varying(operands) }
}

/// Returns the variability of the result of any other operation.
fn uniform_or_varying(operands: Variability) -> Variability {
    if operands == Uniform { Uniform } else { Varying }
}
