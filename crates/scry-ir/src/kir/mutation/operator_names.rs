//! Names of operators, such as `add.f32` and `load.workgroup.u32`.

use std::fmt::Debug;

use crate::kir::{AddressSpace, AtomicOp, Inst, Kir, ShuffleSource, Stmt, SubgroupOp, Type, Value};

/// Suffix of the operator that is an atomic operation's effect on memory. The name without it is
/// the operator that is its result.
pub(super) const MEMORY: &str = ".memory";

/// Returns the operators of a statement itself: its result and its effect for an atomic operation
/// that has both, none for assignments, barriers and control flow.
pub(super) fn stmt_operators(kir: &Kir, stmt: &Stmt) -> Vec<String> {
    match stmt {
        Stmt::Let(value) => value_operators(kir, *value),
        Stmt::Store { place, values, .. } => values
            .first()
            .map(|value| memory("store", place.space, kir.ty(*value)))
            .into_iter()
            .collect(),
        Stmt::MatrixStore { value, .. } => {
            let element = kir.ty(*value).matrix().map(|matrix| matrix.element.ty());
            element.map(|element| typed("matrix_store", element)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn value_operators(kir: &Kir, value: Value) -> Vec<String> {
    let ty = kir.ty(value);
    if ty.matrix().is_some() {
        return matrix_operator(kir, value).into_iter().collect();
    }
    vec![match *kir.inst(value) {
        Inst::Const(_) | Inst::Extra(..) => return Vec::new(),
        Inst::Builtin(builtin) => {
            // `LocalId(0)` is `builtin.local_id.x`.
            let name = snake(builtin);
            let axes = [("(0)", ".x"), ("(1)", ".y"), ("(2)", ".z")];
            let name = axes.iter().fold(name, |name, (number, axis)| name.replace(number, axis));
            format!("builtin.{name}")
        }
        Inst::Unary(op, a) => typed(&snake(op), kir.ty(a)),
        Inst::Binary(op, a, _) => typed(&snake(op), kir.ty(a)),
        Inst::Fma(..) => typed("fma", ty),
        Inst::Select(..) => typed("select", ty),
        Inst::Convert(a) => format!("convert.{}.{ty}", kir.ty(a)),
        Inst::Bitcast(a) => format!("bitcast.{}.{ty}", kir.ty(a)),
        Inst::ArrayLength { .. } => "array_length".to_owned(),
        Inst::Get(_) => typed("get", ty),
        Inst::Load { place, .. } => memory("load", place.space, ty),
        Inst::WorkgroupUniformLoad { .. } => typed("workgroup_uniform_load", ty),
        Inst::Atomic { op, place, value, .. } => {
            let name = memory(&format!("atomic.{}", snake(op)), place.space, ty);
            let effect = value.map(|_| format!("{name}{MEMORY}"));
            let result = (op != AtomicOp::Store).then_some(name);
            return result.into_iter().chain(effect).collect();
        }
        Inst::Subgroup(op) => subgroup(kir, op),
        // Fragments replace matrices after mutation; the others result in matrices, handled above.
        Inst::MultiplyFragments { .. }
        | Inst::MultiplyAdd(..)
        | Inst::MatrixFill(_)
        | Inst::MatrixLoad(_)
        | Inst::LoadFragment(_) => return Vec::new(),
    }]
}

/// Returns the operator that computes a matrix; `None` for variables and arithmetic, of which only
/// those of scalars are mutated.
fn matrix_operator(kir: &Kir, value: Value) -> Option<String> {
    let element = |value| kir.ty(value).matrix().map(|matrix| matrix.element.ty());
    match *kir.inst(value) {
        Inst::MatrixLoad(_) => Some(typed("matrix_load", element(value)?)),
        Inst::MultiplyAdd(a, _, c) => Some(format!("multiply_add.{}.{}", element(a)?, element(c)?)),
        _ => None,
    }
}

fn subgroup(kir: &Kir, op: SubgroupOp) -> String {
    match op {
        SubgroupOp::Ballot { .. } => "ballot".to_owned(),
        SubgroupOp::Reduce { op, group, value } => {
            format!("reduce.{}.{}.{}", snake(op), snake(group), kir.ty(value))
        }
        SubgroupOp::Shuffle { source, value } => {
            format!("shuffle.{}.{}", source_name(source), kir.ty(value))
        }
    }
}

fn source_name(source: ShuffleSource) -> &'static str {
    match source {
        ShuffleSource::First => "first",
        ShuffleSource::Lane(_) => "lane",
        ShuffleSource::Xor(_) => "xor",
        ShuffleSource::Up(_) => "up",
        ShuffleSource::Down(_) => "down",
        ShuffleSource::QuadLane(_) => "quad_lane",
        ShuffleSource::QuadXor(_) => "quad_xor",
    }
}

fn typed(name: &str, ty: Type) -> String {
    format!("{name}.{ty}")
}

fn memory(name: &str, space: AddressSpace, ty: Type) -> String {
    let space = match space {
        AddressSpace::Binding(_) => "binding",
        AddressSpace::Immediate => "immediate",
        AddressSpace::Workgroup(_) => "workgroup",
        AddressSpace::Local(_) => "local",
    };
    format!("{name}.{space}.{ty}")
}

/// Returns the name of a variant in snake case: `LeadingZeros` becomes `leading_zeros`.
pub(super) fn snake(variant: impl Debug) -> String {
    let mut name = String::new();
    for c in format!("{variant:?}").chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}
