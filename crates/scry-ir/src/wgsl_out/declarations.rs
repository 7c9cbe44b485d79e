//! The types with which WGSL declares the variables of a kernel's address spaces.

use super::accesses::{Access, AccessKind, Accesses};
use super::fields::Field;
use super::records::Records;
use crate::kir::{AddressSpace, Array, Buffer, Type};
use crate::{BindingInfo, BufferBindingType};

/// The WGSL variable of an address space of the kernel: of a binding, of the immediates, or of a
/// workgroup or local array.
#[derive(Debug)]
pub(super) struct MemoryVariable {
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// The type of a variable.
#[derive(Debug)]
pub(super) enum Shape {
    Array(Elements),
    /// A runtime-sized array of structures, or of vectors of three components.
    Records(Records),
    /// A structure of these fields, by offset.
    Fields(Vec<Field>),
}

/// An array of scalars, or of vectors of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) ty: Type,
    /// Scalars in an element: 1, 2 or 4.
    pub(super) lanes: u32,
    pub(super) atomic: bool,
    /// Number of elements; `None` for a runtime-sized array.
    pub(super) len: Option<u64>,
}

impl Elements {
    /// Returns the size of a scalar in bytes.
    pub(super) fn scalar_size(&self) -> u32 {
        self.ty.size()
    }

    /// Returns the size of an element in bytes.
    pub(super) fn size(&self) -> u32 {
        self.scalar_size() * self.lanes
    }

    /// Returns the WGSL type of the array.
    pub(super) fn array_type(&self) -> String {
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

/// Returns the array that declares a storage buffer.
pub(super) fn storage_elements(
    i: u32,
    buffer: &Buffer,
    binding: &BindingInfo,
    accesses: &Accesses,
    native_f16: bool,
) -> Elements {
    let mut own = accesses.to_space(AddressSpace::Binding(i)).to_vec();
    if !buffer.writable {
        // Atomic loads become plain loads: atomics need write access, which the binding lacks.
        own.iter_mut().for_each(|access| access.kind = AccessKind::Load);
    }
    let ty = scalar_type(buffer.element, &own, native_f16);
    let (size, runtime) = (binding.layout.fixed_size(), binding.layout.runtime_array());
    let permits = |unit: u32| {
        let fits = |bytes: u64| bytes.is_multiple_of(unit.into());
        let runtime_fits = runtime.is_none_or(|(offset, stride)| fits(offset) && fits(stride));
        (runtime.is_some() || fits(size)) && runtime_fits && accesses.lengths_are_multiples(i, unit)
    };
    let mut elements = elements_for(ty, &own, permits);
    elements.len = runtime.is_none().then(|| size.div_ceil(elements.size().into()));
    elements
}

/// Returns the array that declares a uniform buffer: of vectors, since elements must have 16 bytes.
pub(super) fn uniform_elements(buffer: &Buffer, binding: &BindingInfo) -> Elements {
    debug_assert_eq!(binding.ty, BufferBindingType::Uniform, "others have scalars too");
    let ty = if buffer.element.size() == 4 { buffer.element } else { Type::U32 };
    let len = Some(binding.layout.fixed_size() / 16);
    Elements { ty, lanes: 4, atomic: false, len }
}

/// Returns the array that declares an array in workgroup or local memory.
pub(super) fn array_elements(array: &Array, accesses: &[Access], native_f16: bool) -> Elements {
    let is_native =
        array.ty.size() != 2 || scalar_type(array.ty, accesses, native_f16) == Type::F16;
    let ty = if is_native { array.ty } else { Type::U32 };
    let mut elements = elements_for(ty, accesses, |unit| array.size().is_multiple_of(unit.into()));
    elements.len = Some(array.size().div_ceil(elements.size().into()));
    elements
}

/// Returns the scalar type of a buffer's elements: `element`, or `u32` if accesses of other sizes
/// occur or WGSL lacks `element`.
fn scalar_type(element: Type, accesses: &[Access], native_f16: bool) -> Type {
    let all = |size: u32| accesses.iter().all(|access| access.ty.size() == size);
    match element {
        Type::F16 if native_f16 && accesses.iter().all(|it| it.ty == Type::F16) => Type::F16,
        Type::F32 | Type::I32 if all(4) => element,
        _ => Type::U32,
    }
}

/// Returns the elements of an array for its accesses, without their number (`len`). They are
/// atomics if atomics are used or parts of words are stored, and vectors if every store writes
/// whole vectors: two invocations must not write components of one vector at the same time.
fn elements_for(ty: Type, accesses: &[Access], permits: impl Fn(u32) -> bool) -> Elements {
    let atomics = || accesses.iter().filter(|access| access.kind == AccessKind::Atomic);
    let atomic = atomics().next().is_some() || accesses.iter().any(is_partial_store(ty));
    if atomic {
        let are_signed = |all: bool| {
            let mut found = atomics().filter(|it| all || it.is_ordered).peekable();
            found.peek().is_some() && found.all(|access| access.ty == Type::I32)
        };
        // A minimum of the other sign is a loop; other functions do not depend on the sign.
        let has_order = atomics().any(|access| access.is_ordered);
        let signed = ty.size() == 4 && are_signed(!has_order);
        let ty = if signed { Type::I32 } else { Type::U32 };
        return Elements { ty, lanes: 1, atomic, len: None };
    }
    let fits = |lanes: &u32| {
        let unit = ty.size() * lanes;
        let is_whole_vector = |access: &Access| {
            access.ty.size() == ty.size() && access.count == *lanes && access.is_aligned(unit)
        };
        let stores = |access: &Access| access.kind != AccessKind::Store || is_whole_vector(access);
        permits(unit) && accesses.iter().any(is_whole_vector) && accesses.iter().all(stores)
    };
    let lanes = if ty == Type::Bool { None } else { [4, 2].into_iter().find(fits) };
    Elements { ty, lanes: lanes.unwrap_or(1), atomic, len: None }
}

/// Returns a predicate: whether an access writes a part of a word of type `ty`.
fn is_partial_store(ty: Type) -> impl Fn(&Access) -> bool {
    move |access| {
        let is_whole_words = access.count.is_multiple_of(2) && access.is_aligned(4);
        access.kind == AccessKind::Store
            && ty.size() == 4
            && access.ty.size() == 2
            && !is_whole_words
    }
}
