//! Derives the interface of a kernel whose minimum buffer sizes are known.

use super::limits;
use crate::kir::{Barrier, Buffer, Builtin, Definition, Inst, Kir, Stmt, Type, any_stmt};
use crate::{
    Access, BindingInfo, BufferBindingType, Features, Immediates, Interface, Member, Scalar,
    ScalarKind, TypeLayout,
};

/// Returns a kernel's bindings, immediates, workgroup memory and required features.
pub(super) fn derive(kir: &Kir) -> Interface {
    let immediates = (kir.immediates > 0)
        .then(|| Immediates { name: "immediates".to_owned(), layout: immediates(kir.immediates) });
    Interface {
        entry_point: kir.name.clone(),
        workgroup_size: kir.workgroup_size,
        // `limits` has checked that this fits a `u32`.
        workgroup_memory: limits::bytes(&kir.workgroup) as u32,
        bindings: kir
            .buffers
            .iter()
            .zip(0..)
            .map(|(buffer, index)| binding(buffer, index))
            .collect(),
        immediates,
        overrides: Vec::new(),
        features: features(kir),
    }
}

fn binding(buffer: &Buffer, index: u32) -> BindingInfo {
    BindingInfo {
        group: 0,
        binding: index,
        name: buffer.name.clone(),
        ty: BufferBindingType::Storage,
        access: if buffer.writable { Access::ReadWrite } else { Access::Read },
        layout: layout(buffer),
    }
}

/// Returns the layout of a buffer: a runtime-sized array, which has at least one element, after the
/// other elements that the minimum size requires.
fn layout(buffer: &Buffer) -> TypeLayout {
    let (scalar, stride) = (scalar(buffer.element), buffer.element.size());
    let array =
        |len| TypeLayout::Array { element: Box::new(TypeLayout::Scalar(scalar)), len, stride };
    let elements = buffer.min_size.div_ceil(stride.into()).max(1) as u32;
    if elements == 1 {
        return array(None);
    }
    let size = (elements - 1) * stride;
    let member = |name: &str, offset, layout| Member { name: name.to_owned(), offset, layout };
    TypeLayout::Struct {
        name: format!("array<{scalar}> of at least {elements} elements"),
        members: vec![
            member("_first", 0, array(Some(elements - 1))),
            member("_others", size, array(None)),
        ],
        size,
    }
}

/// Returns a structure without members: KIR does not record the types of immediates.
fn immediates(bytes: u32) -> TypeLayout {
    TypeLayout::Struct { name: "immediates".to_owned(), members: Vec::new(), size: bytes }
}

fn scalar(ty: Type) -> Scalar {
    let kind = match ty {
        _ if ty.is_float() => ScalarKind::Float,
        _ if ty.is_signed() => ScalarKind::Sint,
        _ => ScalarKind::Uint,
    };
    Scalar { kind, width: ty.size() as u8 }
}

/// Returns the optional features that the kernel uses.
fn features(kir: &Kir) -> Features {
    let arrays = kir.workgroup.iter().chain(&kir.locals).map(|array| array.ty);
    let types = arrays.chain(kir.vars.iter().copied());
    let mut used = types.fold(Features::empty(), |used, ty| used | type_features(ty));
    for Definition { ty, inst } in &kir.values {
        used |= type_features(*ty) | inst_features(*ty, inst);
    }
    let is_subgroup_barrier = |stmt: &Stmt| matches!(stmt, Stmt::Barrier(Barrier::Subgroup, _));
    if any_stmt(&kir.body, &mut |stmt| is_subgroup_barrier(stmt)) {
        used |= Features::SUBGROUPS;
    }
    used
}

fn type_features(ty: Type) -> Features {
    match ty {
        Type::F16 => Features::F16,
        Type::F64 => Features::F64,
        Type::I64 | Type::U64 => Features::I64,
        Type::I16 | Type::U16 => Features::I16,
        Type::Bool | Type::I32 | Type::U32 | Type::F32 => Features::empty(),
        Type::Matrix(matrix) => Features::COOPERATIVE_MATRIX | type_features(matrix.element.ty()),
    }
}

fn inst_features(ty: Type, inst: &Inst) -> Features {
    match inst {
        Inst::Builtin(
            Builtin::SubgroupSize
            | Builtin::SubgroupLane
            | Builtin::SubgroupId
            | Builtin::SubgroupCount,
        )
        | Inst::Subgroup(_) => Features::SUBGROUPS,
        Inst::Atomic { .. } if ty == Type::F32 => Features::F32_ATOMICS,
        Inst::Atomic { .. } if ty.size() == 8 => Features::I64_ATOMICS,
        Inst::LoadFragment(_) | Inst::MultiplyFragments { .. } => Features::COOPERATIVE_MATRIX,
        _ => Features::empty(),
    }
}
