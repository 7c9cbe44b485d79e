//! Loads, stores and atomics.

use scry_ir::kir::{AddressSpace, AtomicOp, Place, Value, Variability};

use super::emitter::{Emitter, Location};
use crate::code::{Access, Address, Atomic, Index, MemorySpace, Step};
use crate::lanes::Src;

impl Emitter<'_> {
    /// Returns the address of a place whose elements have this size in bytes.
    fn address(&mut self, place: Place, element_size: u32) -> Address {
        let space = match place.space {
            AddressSpace::Binding(binding) => MemorySpace::Binding(binding),
            AddressSpace::Immediate => MemorySpace::Binding(self.code.writable.len() as u32),
            AddressSpace::Workgroup(array) => MemorySpace::Shared(self.shared[array as usize]),
            AddressSpace::Local(array) => {
                let (_, start, _) = self.code.locals[array as usize];
                MemorySpace::Local { start, len: self.kir.locals[array as usize].len }
            }
        };
        let index = place.index.map_or(Index::None, |index| match self.location(index) {
            Location::Scalar(scalar) => Index::Scalar(scalar),
            Location::Affine(affine) => Index::Affine(affine),
            Location::Lanes(start) => Index::Lanes(start),
        });
        // Addresses in bindings are in bytes, those in workgroup and local memory in elements.
        let unit = if matches!(space, MemorySpace::Binding(_)) { 1 } else { element_size };
        Address { space, index, stride: place.stride / unit, offset: place.offset / unit }
    }

    /// Returns a load, after allocating locations for its results.
    pub(super) fn load_access(&mut self, value: Value, place: Place, count: u8) -> Access {
        let ty = self.kir.ty(value);
        let address = self.address(place, ty.size());
        let mut access = Access { ty, address, count, to: [0; 4], from: [Src::default(); 4] };
        for nth in 0..u32::from(count) {
            let result = Value(value.0 + nth);
            access.to[nth as usize] = match self.define(result) {
                Location::Scalar(scalar) => scalar,
                Location::Lanes(start) => start,
                Location::Affine(affine) => affine.lanes,
            };
        }
        access
    }

    pub(super) fn load(&mut self, value: Value, place: Place, count: u8) {
        let access = self.load_access(value, place, count);
        if self.variability(value) == Variability::Uniform {
            self.push(Step::LoadScalar(Box::new(access)));
        } else {
            self.push(Step::Load(Box::new(access)));
        }
        for nth in 0..u32::from(count) {
            self.expand_if_needed(Value(value.0 + nth));
        }
    }

    pub(super) fn store(&mut self, place: Place, values: &[Value]) {
        let Some(first) = values.first() else { return };
        let ty = self.kir.ty(*first);
        let address = self.address(place, ty.size());
        let count = values.len() as u8;
        let mut access = Access { ty, address, count, to: [0; 4], from: [Src::default(); 4] };
        if self.mul_add_to_memory(*first, access) {
            return;
        }
        for (from, value) in access.from.iter_mut().zip(values) {
            *from = self.lanes(*value);
        }
        self.push(Step::Store(Box::new(access)));
    }

    pub(super) fn atomic(
        &mut self,
        result: Value,
        op: AtomicOp,
        place: Place,
        value: Option<Value>,
        compare: Option<Value>,
    ) {
        let ty = self.kir.ty(result);
        let address = self.address(place, ty.size());
        let operand = |emitter: &mut Self, value: Option<Value>| {
            value.map_or(Src::default(), |value| emitter.lanes(value))
        };
        let value = operand(self, value);
        let compare = operand(self, compare);
        if let Location::Lanes(d) = self.define(result) {
            self.push(Step::Atomic(Box::new(Atomic { ty, address, op, d, value, compare })));
        }
    }
}
