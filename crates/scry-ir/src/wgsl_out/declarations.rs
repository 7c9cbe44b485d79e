//! How WGSL declares each memory of a kernel.

use super::accesses::{Access, Accesses, Kind};
use super::fields::Field;
use crate::kir::{AddressSpace, Array, Buffer, Type};
use crate::{Binding, BufferBindingType};

/// A memory of the kernel.
#[derive(Debug)]
pub(super) struct Memory {
    /// Name of the variable.
    pub(super) name: String,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Array(Elements),
    /// A structure of these fields, by offset.
    Fields(Vec<Field>),
}

/// An array of scalars, or of vectors of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) ty: Type,
    /// Scalars of an element: 1, 2 or 4.
    pub(super) lanes: u32,
    pub(super) atomic: bool,
    /// Number of elements; `None` for a runtime-sized array.
    pub(super) len: Option<u64>,
}

impl Elements {
    /// Bytes of a scalar.
    pub(super) fn width(&self) -> u32 {
        self.ty.size()
    }

    /// Bytes of an element.
    pub(super) fn unit(&self) -> u32 {
        self.width() * self.lanes
    }

    /// The type, as WGSL spells it.
    pub(super) fn spelled(&self) -> String {
        let element = match (self.atomic, self.lanes) {
            (true, _) => format!("atomic<{}>", self.ty),
            (false, 1) => self.ty.to_string(),
            (false, lanes) => format!("vec{lanes}<{}>", self.ty),
        };
        match self.len {
            Some(len) => format!("array<{element}, {len}>"),
            None => format!("array<{element}>"),
        }
    }
}

/// The array of a storage buffer.
pub(super) fn storage(
    nth: u32,
    buffer: &Buffer,
    binding: &Binding,
    accesses: &Accesses,
    native_f16: bool,
) -> Elements {
    let mut own = accesses.of(AddressSpace::Binding(nth)).to_vec();
    if !buffer.writable {
        // Atomics need write access, which the host does not give.
        own.iter_mut().for_each(|access| access.kind = Kind::Load);
    }
    let ty = word(buffer.element, &own, native_f16);
    let (size, runtime) = (binding.layout.fixed_size(), binding.layout.runtime_array());
    let permits = |unit: u32| {
        let fits = |bytes: u64| bytes.is_multiple_of(unit.into());
        let runtime_fits = runtime.is_none_or(|(offset, stride)| fits(offset) && fits(stride));
        (runtime.is_some() || fits(size))
            && runtime_fits
            && accesses.lengths_are_multiples(nth, unit)
    };
    let mut elements = elements(ty, &own, permits);
    elements.len = runtime.is_none().then(|| size.div_ceil(elements.unit().into()));
    elements
}

/// The array of a uniform buffer, whose elements must be of 16 bytes: of vectors.
pub(super) fn uniform(buffer: &Buffer, binding: &Binding) -> Elements {
    debug_assert_eq!(binding.ty, BufferBindingType::Uniform, "others have scalars too");
    let ty = if buffer.element.size() == 4 { buffer.element } else { Type::U32 };
    let len = Some(binding.layout.fixed_size() / 16);
    Elements { ty, lanes: 4, atomic: false, len }
}

/// An array in workgroup or local memory.
pub(super) fn array(array: &Array, own: &[Access], native_f16: bool) -> Elements {
    let ty = if native_f16 || array.ty.size() != 2 { array.ty } else { Type::U32 };
    let mut elements = elements(ty, own, |unit| array.size().is_multiple_of(unit.into()));
    elements.len = Some(array.size().div_ceil(elements.unit().into()));
    elements
}

/// The scalar type of a buffer's elements: its own, or words where accesses of other sizes occur or
/// WGSL lacks it.
fn word(element: Type, accesses: &[Access], native_f16: bool) -> Type {
    let all = |size: u32| accesses.iter().all(|access| access.ty.size() == size);
    match element {
        Type::F16 if native_f16 && all(2) => Type::F16,
        Type::F32 | Type::I32 if all(4) => element,
        _ => Type::U32,
    }
}

/// Elements without their number: atomics where atomics are used, vectors where every store is of
/// whole ones, for one invocation may not write a component while another writes the next.
fn elements(ty: Type, accesses: &[Access], permits: impl Fn(u32) -> bool) -> Elements {
    let atomics = || accesses.iter().filter(|access| access.kind == Kind::Atomic);
    let atomic = atomics().next().is_some() || accesses.iter().any(is_partial_store(ty));
    if atomic {
        let signed = ty.size() == 4 && atomics().all(|access| access.ty == Type::I32);
        let ty = if signed && atomics().next().is_some() { Type::I32 } else { Type::U32 };
        return Elements { ty, lanes: 1, atomic, len: None };
    }
    let fits = |lanes: &u32| {
        let unit = ty.size() * lanes;
        let whole = |access: &Access| {
            access.ty.size() == ty.size() && access.count == *lanes && access.is_aligned(unit)
        };
        let stores = |access: &Access| access.kind != Kind::Store || whole(access);
        permits(unit) && accesses.iter().any(whole) && accesses.iter().all(stores)
    };
    let lanes = if ty == Type::Bool { None } else { [4, 2].into_iter().find(fits) };
    Elements { ty, lanes: lanes.unwrap_or(1), atomic, len: None }
}

/// Whether an access writes a part of a word.
fn is_partial_store(ty: Type) -> impl Fn(&Access) -> bool {
    move |access| {
        let whole = access.count.is_multiple_of(2) && access.is_aligned(4);
        access.kind == Kind::Store && ty.size() == 4 && access.ty.size() == 2 && !whole
    }
}
