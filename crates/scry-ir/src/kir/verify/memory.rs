//! Checks accesses to memory.

use super::error::{Fault, fault, same};
use super::{Check, VerifyErrorKind};
use crate::kir::{AddressSpace, AtomicOp, Buffer, Inst, Kir, MatrixPlace, Place, Type, Value};

/// The kind of access.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
    /// An atomic read-modify-write.
    Change,
    /// An atomic load.
    AtomicRead,
}

/// Checks a load of `count` values.
pub(super) fn load(kir: &Kir, place: &Place, count: u8, ty: Type) -> Check {
    check(kir, place, Access::Read, ty, usize::from(count))
}

/// Checks a uniform load of `count` values.
pub(super) fn uniform_load(kir: &Kir, place: &Place, count: u8, ty: Type) -> Check {
    match place.space {
        AddressSpace::Workgroup(_) => load(kir, place, count, ty),
        space => Err(wrong(format!("{space} is not workgroup memory"))),
    }
}

/// Checks a store of values whose definitions exist.
pub(super) fn store(kir: &Kir, place: &Place, values: &[Value]) -> Check {
    let ty = values.first().map_or(Type::U32, |value| kir.ty(*value));
    values.iter().try_for_each(|value| same(kir.ty(*value), ty, "the store"))?;
    check(kir, place, Access::Write, ty, values.len())
}

/// Checks an atomic whose operands have definitions.
pub(super) fn atomic(kir: &Kir, inst: &Inst, ty: Type) -> Check {
    let Inst::Atomic { op, place, value, compare } = inst else { return Ok(()) };
    if !changes(*op, ty) {
        let message = format!("there is no atomic `{op:?}` of {ty}");
        return Err(fault(VerifyErrorKind::Type, message));
    }
    let expected = [*op != AtomicOp::Load, *op == AtomicOp::CompareExchange];
    if [value.is_some(), compare.is_some()] != expected {
        let message = format!("an atomic `{op:?}` has other operands");
        return Err(fault(VerifyErrorKind::Type, message));
    }
    value.iter().chain(compare).try_for_each(|operand| same(kir.ty(*operand), ty, "the atomic"))?;
    let access = if *op == AtomicOp::Load { Access::AtomicRead } else { Access::Change };
    check(kir, place, access, ty, 1)
}

/// Checks a load of a matrix.
pub(super) fn matrix_load(kir: &Kir, place: &MatrixPlace, ty: Type) -> Check {
    matrix(kir, place, Access::Read, ty)
}

/// Checks a store of a matrix whose definition exists.
pub(super) fn matrix_store(kir: &Kir, place: &MatrixPlace, ty: Type) -> Check {
    matrix(kir, place, Access::Write, ty)
}

fn matrix(kir: &Kir, place: &MatrixPlace, access: Access, ty: Type) -> Check {
    let Some(matrix) = ty.matrix() else {
        let message = format!("{ty} is not a matrix");
        return Err(fault(VerifyErrorKind::Type, message));
    };
    let MatrixPlace { array, len, index, stride, .. } = place;
    same(kir.ty(*index), Type::U32, "the index of the matrix")?;
    same(kir.ty(*stride), Type::U32, "the stride of the matrix")?;
    len.iter().try_for_each(|len| same(kir.ty(*len), Type::U32, "the length of the array"))?;
    if let AddressSpace::Local(_) = array.space {
        return Err(wrong(format!("{} is not shared", array.space)));
    }
    check(kir, array, access, matrix.element.ty(), 1)
}

fn changes(op: AtomicOp, ty: Type) -> bool {
    match ty {
        Type::I32 | Type::U32 | Type::I64 | Type::U64 => true,
        Type::F32 => {
            use AtomicOp::{Add, Exchange, Load, Store, Sub};
            matches!(op, Load | Store | Add | Sub | Exchange)
        }
        _ => false,
    }
}

/// Checks the length of a runtime-sized array.
pub(super) fn array(kir: &Kir, binding: u32, stride: u32) -> Check {
    buffer(kir, binding)?;
    if stride == 0 { Err(wrong("the stride is zero")) } else { Ok(()) }
}

fn wrong(message: impl Into<String>) -> Fault {
    fault(VerifyErrorKind::Memory, message)
}

/// The fault of an access to a memory that is not declared.
fn missing(space: AddressSpace) -> Fault {
    fault(VerifyErrorKind::Value, format!("there is no {space}"))
}

fn buffer(kir: &Kir, binding: u32) -> Result<&Buffer, Fault> {
    kir.buffers.get(binding as usize).ok_or_else(|| missing(AddressSpace::Binding(binding)))
}

/// Requires that a memory is declared.
pub(super) fn exists(kir: &Kir, space: AddressSpace) -> Check {
    let (count, nth) = match space {
        AddressSpace::Binding(nth) => (kir.buffers.len(), nth),
        AddressSpace::Immediate => return Ok(()),
        AddressSpace::Workgroup(nth) => (kir.workgroup.len(), nth),
        AddressSpace::Local(nth) => (kir.locals.len(), nth),
    };
    if (nth as usize) < count { Ok(()) } else { Err(missing(space)) }
}

/// Checks an access to `count` elements of a type.
fn check(kir: &Kir, place: &Place, access: Access, ty: Type, count: usize) -> Check {
    if ty.matrix().is_some() && (count != 1 || !matches!(place.space, AddressSpace::Local(_))) {
        let message = format!("{} has no run of {count} matrices", place.space);
        return Err(wrong(message));
    }
    if !(1..=4).contains(&count) {
        return Err(wrong(format!("{count} values are accessed, not 1 to 4")));
    }
    if let Some(index) = place.index {
        same(kir.ty(index), Type::U32, "the index")?;
    }
    let size = ty.size();
    if !place.stride.is_multiple_of(size) || !place.offset.is_multiple_of(size) {
        let message = format!("{place} is not a multiple of {size} bytes, the size of {ty}");
        return Err(wrong(message));
    }
    allowed(kir, place.space, access, ty)?;
    let limit = limit(kir, place.space, ty)?;
    let constant = place.index.and_then(|index| kir.constant(index)).map_or(0, |c| c.bits);
    let end = constant.saturating_mul(place.stride.into()).saturating_add(place.offset.into());
    let end = end.saturating_add(u64::from(size) * count as u64);
    match limit {
        Some(limit) if end > limit => {
            Err(wrong(format!("byte {end} is past the {limit} bytes of {}", place.space)))
        }
        _ => Ok(()),
    }
}

/// Checks that an address space allows an access.
fn allowed(kir: &Kir, space: AddressSpace, access: Access, ty: Type) -> Check {
    let host = matches!(space, AddressSpace::Binding(_) | AddressSpace::Immediate);
    if host && ty == Type::Bool {
        return Err(wrong(format!("{space} has no bool")));
    }
    let writes = matches!(access, Access::Write | Access::Change);
    let atomic = matches!(access, Access::Change | Access::AtomicRead);
    match space {
        AddressSpace::Binding(nth) if writes && !buffer(kir, nth)?.writable => {
            Err(wrong(format!("{space} is read only")))
        }
        AddressSpace::Immediate if writes => Err(wrong(format!("{space} is read only"))),
        AddressSpace::Local(_) if atomic => Err(wrong(format!("{space} is not shared"))),
        _ => Ok(()),
    }
}

/// Returns the size in bytes of a memory, if it is known. Checks that its elements have this type.
fn limit(kir: &Kir, space: AddressSpace, ty: Type) -> Result<Option<u64>, Fault> {
    let (arrays, nth) = match space {
        AddressSpace::Binding(nth) => return buffer(kir, nth).map(|_| None),
        AddressSpace::Immediate => return Ok(Some(u64::from(kir.immediates))),
        AddressSpace::Workgroup(nth) => (&kir.workgroup, nth),
        AddressSpace::Local(nth) => (&kir.locals, nth),
    };
    let array = arrays.get(nth as usize).ok_or_else(|| missing(space))?;
    same(ty, array.ty, &space.to_string())?;
    Ok(Some(array.size()))
}
