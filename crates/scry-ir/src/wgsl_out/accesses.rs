//! What a kernel does with each memory.

use std::collections::BTreeMap;

use crate::kir::{AddressSpace, Inst, Kir, Place, Stmt, Type, for_each_stmt};

/// How memory is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Load,
    Store,
    Atomic,
}

/// An access to contiguous values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) ty: Type,
    pub(super) count: u32,
}

/// The accesses of a kernel, and the lengths that it asks for.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    by_space: BTreeMap<AddressSpace, Vec<Access>>,
    /// Binding, offset and stride of each runtime-sized array whose length is used.
    lengths: Vec<(u32, u32, u32)>,
}

impl Access {
    /// Whether the first byte is a multiple of `unit` for every index.
    pub(super) fn is_aligned(&self, unit: u32) -> bool {
        let strided = self.place.index.is_some();
        self.place.offset.is_multiple_of(unit)
            && (!strided || self.place.stride.is_multiple_of(unit))
    }

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
                found.add(Kind::Store, constant(kir, *place), ty, values.len() as u32);
            }
            _ => {}
        });
        found
    }

    fn instruction(&mut self, kir: &Kir, inst: &Inst, ty: Type) {
        match *inst {
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                self.add(Kind::Load, constant(kir, place), ty, count.into());
            }
            Inst::Atomic { place, .. } => self.add(Kind::Atomic, constant(kir, place), ty, 1),
            Inst::ArrayLength { binding, offset, stride } => {
                self.lengths.push((binding, offset, stride));
            }
            _ => {}
        }
    }

    fn add(&mut self, kind: Kind, place: Place, ty: Type, count: u32) {
        let access = Access { kind, place, ty, count };
        self.by_space.entry(place.space).or_default().push(access);
    }

    /// The accesses to a memory.
    pub(super) fn of(&self, space: AddressSpace) -> &[Access] {
        self.by_space.get(&space).map_or(&[], Vec::as_slice)
    }

    /// Whether the lengths of a binding's array can be had from its number of units.
    pub(super) fn lengths_are_multiples(&self, binding: u32, unit: u32) -> bool {
        let mut own = self.lengths.iter().filter(|(of, ..)| *of == binding);
        own.all(|(_, offset, stride)| offset.is_multiple_of(unit) && stride.is_multiple_of(unit))
    }

    /// Whether the kernel uses a binding.
    pub(super) fn uses(&self, binding: u32) -> bool {
        !self.of(AddressSpace::Binding(binding)).is_empty()
            || self.lengths.iter().any(|(of, ..)| *of == binding)
    }
}

/// A place without its index if that is a constant.
fn constant(kir: &Kir, place: Place) -> Place {
    let index = place.index.and_then(|index| kir.constant(index));
    let byte = index.map(|index| index.bits * u64::from(place.stride) + u64::from(place.offset));
    match byte.and_then(|byte| u32::try_from(byte).ok()) {
        Some(offset) => Place { index: None, offset, ..place },
        None => place,
    }
}
