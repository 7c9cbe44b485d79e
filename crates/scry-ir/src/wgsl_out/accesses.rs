//! Collects the accesses of a kernel to each address space.

use std::collections::BTreeMap;

use crate::kir::{AddressSpace, AtomicOp, Inst, Kir, Place, Stmt, Type, for_each_stmt};

/// How memory is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// An access to contiguous values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    /// Whether it is an atomic minimum or maximum, which depends on the sign of the type.
    pub(super) is_ordered: bool,
    pub(super) place: Place,
    pub(super) ty: Type,
    pub(super) count: u32,
}

/// The accesses of a kernel, and the array lengths that it uses.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    by_space: BTreeMap<AddressSpace, Vec<Access>>,
    /// Binding, offset and stride of each runtime-sized array whose length is used.
    lengths: Vec<(u32, u32, u32)>,
}

impl Access {
    /// Returns whether the byte offset is a multiple of `unit` for every index.
    pub(super) fn is_aligned(&self, unit: u32) -> bool {
        let strided = self.place.index.is_some();
        self.place.offset.is_multiple_of(unit)
            && (!strided || self.place.stride.is_multiple_of(unit))
    }

    /// Returns whether the index is computed at run time.
    pub(super) fn is_indexed(&self) -> bool {
        self.place.index.is_some()
    }
}

impl Accesses {
    pub(super) fn new(kir: &Kir) -> Self {
        let mut found = Self::default();
        for_each_stmt(&kir.body, &mut |stmt| match stmt {
            Stmt::Let(value) => found.instruction(kir, kir.inst(*value), kir.ty(*value)),
            Stmt::Store { place, values, .. } => {
                let ty = values.first().map_or(Type::U32, |value| kir.ty(*value));
                found.add(AccessKind::Store, fold_index(kir, *place), ty, values.len() as u32);
            }
            _ => {}
        });
        found
    }

    fn instruction(&mut self, kir: &Kir, inst: &Inst, ty: Type) {
        match *inst {
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                self.add(AccessKind::Load, fold_index(kir, place), ty, count.into());
            }
            Inst::Atomic { op, place, .. } => {
                let is_ordered = matches!(op, AtomicOp::Min | AtomicOp::Max);
                let (kind, place) = (AccessKind::Atomic, fold_index(kir, place));
                self.push(Access { kind, is_ordered, place, ty, count: 1 });
            }
            Inst::ArrayLength { binding, offset, stride } => {
                self.lengths.push((binding, offset, stride));
            }
            _ => {}
        }
    }

    fn add(&mut self, kind: AccessKind, place: Place, ty: Type, count: u32) {
        self.push(Access { kind, is_ordered: false, place, ty, count });
    }

    fn push(&mut self, access: Access) {
        self.by_space.entry(access.place.space).or_default().push(access);
    }

    /// Returns the accesses to an address space.
    pub(super) fn to_space(&self, space: AddressSpace) -> &[Access] {
        self.by_space.get(&space).map_or(&[], Vec::as_slice)
    }

    /// Returns whether the array lengths that the kernel uses of a binding can be computed from the
    /// number of units of `unit` bytes: whether their offsets and strides are multiples of it.
    pub(super) fn lengths_are_multiples(&self, binding: u32, unit: u32) -> bool {
        let mut lengths = self.lengths.iter().filter(|(buffer, ..)| *buffer == binding);
        lengths
            .all(|(_, offset, stride)| offset.is_multiple_of(unit) && stride.is_multiple_of(unit))
    }

    /// Returns whether the kernel accesses a binding, or uses its array length.
    pub(super) fn uses(&self, binding: u32) -> bool {
        !self.to_space(AddressSpace::Binding(binding)).is_empty()
            || self.lengths.iter().any(|(buffer, ..)| *buffer == binding)
    }
}

/// Folds a constant index into the offset.
fn fold_index(kir: &Kir, place: Place) -> Place {
    let index = place.index.and_then(|index| kir.constant(index));
    let byte = index.map(|index| index.bits * u64::from(place.stride) + u64::from(place.offset));
    match byte.and_then(|byte| u32::try_from(byte).ok()) {
        Some(offset) => Place { index: None, offset, ..place },
        None => place,
    }
}
