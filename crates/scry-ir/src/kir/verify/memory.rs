//! Checks accesses to memory.

use super::error::{Violation, require_same_type, violation};
use super::{Check, VerifyErrorKind};
use crate::kir::{
    AddressSpace, AtomicOp, Buffer, FragmentPlace, Inst, Kir, MatrixPlace, Place, Type, Value,
};

/// The kind of access.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
    /// An atomic store or read-modify-write.
    AtomicWrite,
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
        space => Err(memory_violation(format!("{space} is not workgroup memory"))),
    }
}

/// Checks a store of values whose definitions exist.
pub(super) fn store(kir: &Kir, place: &Place, values: &[Value]) -> Check {
    let ty = values.first().map_or(Type::U32, |value| kir.ty(*value));
    values.iter().try_for_each(|value| require_same_type(kir.ty(*value), ty, "a stored value"))?;
    check(kir, place, Access::Write, ty, values.len())
}

/// Checks an atomic whose operands have definitions.
pub(super) fn atomic(kir: &Kir, inst: &Inst, ty: Type) -> Check {
    let Inst::Atomic { op, place, value, compare } = inst else { return Ok(()) };
    if !is_atomic_supported(*op, ty) {
        let message = format!("atomic `{op:?}` is not defined for {ty}");
        return Err(violation(VerifyErrorKind::Type, message));
    }
    let expected = [*op != AtomicOp::Load, *op == AtomicOp::CompareExchange];
    if [value.is_some(), compare.is_some()] != expected {
        let message = format!("an atomic `{op:?}` has the wrong number of operands");
        return Err(violation(VerifyErrorKind::Type, message));
    }
    value.iter().chain(compare).try_for_each(|operand| {
        require_same_type(kir.ty(*operand), ty, "an operand of the atomic")
    })?;
    let access = if *op == AtomicOp::Load { Access::AtomicRead } else { Access::AtomicWrite };
    check(kir, place, access, ty, 1)
}

/// Checks a load of a matrix.
pub(super) fn matrix_load(kir: &Kir, place: &MatrixPlace, ty: Type) -> Check {
    matrix(kir, place, Access::Read, ty)
}

/// Checks a load of a lane's elements of a matrix.
pub(super) fn load_fragment(kir: &Kir, from: &FragmentPlace, ty: Type) -> Check {
    let FragmentPlace { matrix, place, stride, .. } = from;
    require_same_type(kir.ty(*stride), Type::U32, "the stride of the matrix")?;
    require_same_type(matrix.element.ty(), Type::F16, "an element of the fragment")?;
    match place.space {
        AddressSpace::Workgroup(_) => {
            require_same_type(ty, Type::F16, "the fragment")?;
            check(kir, place, Access::Read, ty, 1)
        }
        space => Err(memory_violation(format!("{space} is not workgroup memory"))),
    }
}

/// Checks a store of a matrix whose definition exists.
pub(super) fn matrix_store(kir: &Kir, place: &MatrixPlace, ty: Type) -> Check {
    matrix(kir, place, Access::Write, ty)
}

fn matrix(kir: &Kir, place: &MatrixPlace, access: Access, ty: Type) -> Check {
    let Some(matrix) = ty.matrix() else {
        let message = format!("{ty} is not a matrix");
        return Err(violation(VerifyErrorKind::Type, message));
    };
    let MatrixPlace { array, len, index, stride, .. } = place;
    require_same_type(kir.ty(*index), Type::U32, "the index of the matrix")?;
    require_same_type(kir.ty(*stride), Type::U32, "the stride of the matrix")?;
    len.iter().try_for_each(|len| {
        require_same_type(kir.ty(*len), Type::U32, "the length of the array")
    })?;
    if let AddressSpace::Local(_) = array.space {
        return Err(memory_violation(format!("{} is not shared", array.space)));
    }
    check(kir, array, access, matrix.element.ty(), 1)
}

fn is_atomic_supported(op: AtomicOp, ty: Type) -> bool {
    match ty {
        Type::I32 | Type::U32 | Type::I64 | Type::U64 => true,
        Type::F32 => {
            use AtomicOp::{Add, Exchange, Load, Store, Sub};
            matches!(op, Load | Store | Add | Sub | Exchange)
        }
        _ => false,
    }
}

/// Checks an instruction for the length of a runtime-sized array.
pub(super) fn array_length(kir: &Kir, binding: u32, stride: u32) -> Check {
    buffer(kir, binding)?;
    if stride == 0 { Err(memory_violation("the stride is zero")) } else { Ok(()) }
}

fn memory_violation(message: impl Into<String>) -> Violation {
    violation(VerifyErrorKind::Memory, message)
}

/// Returns the violation of an access to a memory that is not declared.
fn missing_violation(space: AddressSpace) -> Violation {
    violation(VerifyErrorKind::Value, format!("{space} is not declared"))
}

fn buffer(kir: &Kir, binding: u32) -> Result<&Buffer, Violation> {
    kir.buffers
        .get(binding as usize)
        .ok_or_else(|| missing_violation(AddressSpace::Binding(binding)))
}

/// Requires that a memory is declared.
pub(super) fn exists(kir: &Kir, space: AddressSpace) -> Check {
    let (count, nth) = match space {
        AddressSpace::Binding(nth) => (kir.buffers.len(), nth),
        AddressSpace::Immediate => return Ok(()),
        AddressSpace::Workgroup(nth) => (kir.workgroup.len(), nth),
        AddressSpace::Local(nth) => (kir.locals.len(), nth),
    };
    if (nth as usize) < count { Ok(()) } else { Err(missing_violation(space)) }
}

/// Checks an access to `count` elements of a type.
fn check(kir: &Kir, place: &Place, access: Access, ty: Type, count: usize) -> Check {
    if ty.matrix().is_some() {
        if !matches!(place.space, AddressSpace::Local(_)) {
            let message = "matrices outside of local arrays are accessed by `matrix_load` and \
                           `matrix_store`";
            return Err(memory_violation(message));
        }
        if count != 1 {
            let message = format!("{count} matrices are accessed, not 1");
            return Err(memory_violation(message));
        }
    }
    if !(1..=4).contains(&count) {
        return Err(memory_violation(format!("{count} values are accessed, not 1 to 4")));
    }
    if let Some(index) = place.index {
        require_same_type(kir.ty(index), Type::U32, "the index")?;
    }
    let size = ty.size();
    if !place.stride.is_multiple_of(size) || !place.offset.is_multiple_of(size) {
        let message = format!("{place} is not a multiple of {size} bytes, the size of {ty}");
        return Err(memory_violation(message));
    }
    check_access(kir, place.space, access, ty)?;
    let memory_size = memory_size(kir, place.space, ty)?;
    // An index that is not constant may be 0.
    let index = place.index.and_then(|index| kir.constant(index)).map_or(0, |c| c.bits);
    let end = index.saturating_mul(place.stride.into()).saturating_add(place.offset.into());
    let end = end.saturating_add(u64::from(size) * count as u64);
    match memory_size {
        Some(size) if end > size => {
            let space = place.space;
            let message =
                format!("the access ends at byte {end}, past the {size} bytes of {space}");
            Err(memory_violation(message))
        }
        _ => Ok(()),
    }
}

/// Checks that an address space allows an access.
fn check_access(kir: &Kir, space: AddressSpace, access: Access, ty: Type) -> Check {
    let is_untyped = matches!(space, AddressSpace::Binding(_) | AddressSpace::Immediate);
    if is_untyped && ty == Type::Bool {
        return Err(memory_violation(format!("{space} cannot contain bool")));
    }
    let writes = matches!(access, Access::Write | Access::AtomicWrite);
    let atomic = matches!(access, Access::AtomicWrite | Access::AtomicRead);
    match space {
        AddressSpace::Binding(nth) if writes && !buffer(kir, nth)?.writable => {
            Err(memory_violation(format!("{space} is read only")))
        }
        AddressSpace::Immediate if writes => Err(memory_violation(format!("{space} is read only"))),
        AddressSpace::Local(_) if atomic => Err(memory_violation(format!("{space} is not shared"))),
        _ => Ok(()),
    }
}

/// Returns the size of a memory in bytes; `None` for a buffer. Checks that the elements of an array
/// have this type.
fn memory_size(kir: &Kir, space: AddressSpace, ty: Type) -> Result<Option<u64>, Violation> {
    let (arrays, nth) = match space {
        AddressSpace::Binding(nth) => return buffer(kir, nth).map(|_| None),
        AddressSpace::Immediate => return Ok(Some(u64::from(kir.immediates))),
        AddressSpace::Workgroup(nth) => (&kir.workgroup, nth),
        AddressSpace::Local(nth) => (&kir.locals, nth),
    };
    let array = arrays.get(nth as usize).ok_or_else(|| missing_violation(space))?;
    require_same_type(ty, array.ty, &format!("an element of {space}"))?;
    Ok(Some(array.size()))
}
