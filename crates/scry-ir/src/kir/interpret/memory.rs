//! Memory accesses of the interpreter.

use super::workgroup::Workgroup;
use super::{BoundsPolicy, Event, InterpretError, scalar};
use crate::kir::alignment::MATRIX_ALIGNMENT;
use crate::kir::{
    AddressSpace, AtomicOp, BinaryOp, Const, FragmentPlace, MatrixUse, Place, Type, Value,
};

impl Workgroup<'_, '_> {
    /// Returns the byte address of element `nth` of an access.
    fn byte(&self, lane: u32, place: &Place, nth: u32, ty: Type) -> Result<u64, InterpretError> {
        let index = place.index.map_or(Ok(0), |index| Ok(self.get(lane, index)?.bits))?;
        let offset = u64::from(place.offset) + u64::from(nth * ty.size());
        Ok(index * u64::from(place.stride) + offset)
    }

    /// Returns the bytes of an element in memory; `None` if the bounds policy ignores the access.
    fn element(
        &mut self,
        lane: u32,
        space: AddressSpace,
        byte: u64,
        ty: Type,
    ) -> Result<Option<&mut [u8]>, InterpretError> {
        let (invocation, size) = (self.invocation(lane), ty.size());
        if !byte.is_multiple_of(size.into()) {
            return Err(InterpretError::Misaligned { invocation, space, byte, size });
        }
        let memory = match space {
            AddressSpace::Binding(nth) => &mut self.interpreter.buffers[nth as usize],
            AddressSpace::Immediate => &mut self.interpreter.immediates,
            AddressSpace::Workgroup(nth) => &mut self.shared[nth as usize],
            AddressSpace::Local(nth) => &mut self.locals[lane as usize][nth as usize],
        };
        let len = memory.len() as u64;
        if byte + u64::from(size) > len {
            return match self.interpreter.bounds {
                BoundsPolicy::Error => {
                    Err(InterpretError::OutOfBounds { invocation, space, byte, size, len })
                }
                BoundsPolicy::ReadZeroSkipWrite => Ok(None),
            };
        }
        Ok(Some(&mut memory[byte as usize..][..size as usize]))
    }

    pub(super) fn read(
        &mut self,
        lane: u32,
        place: &Place,
        nth: u32,
        ty: Type,
    ) -> Result<Const, InterpretError> {
        let byte = self.byte(lane, place, nth, ty)?;
        self.read_byte(lane, place.space, byte, ty)
    }

    fn read_byte(
        &mut self,
        lane: u32,
        space: AddressSpace,
        byte: u64,
        ty: Type,
    ) -> Result<Const, InterpretError> {
        let mut word = [0; 8];
        if let Some(element) = self.element(lane, space, byte, ty)? {
            word[..ty.size() as usize].copy_from_slice(element);
        }
        Ok(Const { ty, bits: u64::from_le_bytes(word) })
    }

    /// Returns result `nth` of [`Inst::LoadFragment`](crate::kir::Inst::LoadFragment) for an
    /// invocation.
    pub(super) fn load_fragment(
        &mut self,
        lane: u32,
        from: &FragmentPlace,
        nth: u32,
    ) -> Result<Const, InterpretError> {
        let (ty, space) = (from.matrix.element.ty(), from.place.space);
        let [row, column] = fragment_position(from.matrix.role, self.lane_in_subgroup(lane), nth);
        let [line, position] = if from.row_major { [row, column] } else { [column, row] };
        let first = self.byte(lane, &from.place, 0, ty)?;
        let line_bytes = self.get(lane, from.stride)?.bits * u64::from(ty.size());
        let start = first + u64::from(line) * line_bytes;
        if !start.is_multiple_of(MATRIX_ALIGNMENT.into()) {
            let (invocation, size) = (self.invocation(lane), MATRIX_ALIGNMENT);
            return Err(InterpretError::Misaligned { invocation, space, byte: start, size });
        }
        self.read_byte(lane, space, start + u64::from(position * ty.size()), ty)
    }

    pub(super) fn write(
        &mut self,
        lane: u32,
        place: &Place,
        nth: u32,
        value: Const,
    ) -> Result<(), InterpretError> {
        let space = place.space;
        let writable = match space {
            AddressSpace::Binding(nth) => self.kir.buffers[nth as usize].writable,
            AddressSpace::Immediate => false,
            AddressSpace::Workgroup(_) | AddressSpace::Local(_) => true,
        };
        if !writable {
            return Err(InterpretError::ReadOnly { invocation: self.invocation(lane), space });
        }
        let byte = self.byte(lane, place, nth, value.ty)?;
        let word = value.bits.to_le_bytes();
        if let Some(element) = self.element(lane, space, byte, value.ty)? {
            element.copy_from_slice(&word[..value.ty.size() as usize]);
            self.report(lane, Event::Written { space, byte, value });
        }
        Ok(())
    }

    /// Executes an atomic operation; returns the previous content.
    pub(super) fn atomic(
        &mut self,
        lane: u32,
        op: AtomicOp,
        place: &Place,
        [value, compare]: [Option<Value>; 2],
        ty: Type,
    ) -> Result<Const, InterpretError> {
        let Some(value) = value else { return self.read(lane, place, 0, ty) };
        let value = self.get(lane, value)?;
        let old = self.read(lane, place, 0, value.ty)?;
        let matches = match compare {
            Some(compare) => self.get(lane, compare)? == old,
            None => true,
        };
        let combine = |op| scalar::binary(op, old, value);
        let new = match op {
            AtomicOp::Load => old,
            AtomicOp::Store | AtomicOp::Exchange => value,
            AtomicOp::CompareExchange => {
                if matches {
                    value
                } else {
                    old
                }
            }
            AtomicOp::Add => combine(BinaryOp::Add),
            AtomicOp::Sub => combine(BinaryOp::Sub),
            AtomicOp::Max => combine(BinaryOp::Max),
            AtomicOp::Min => combine(BinaryOp::Min),
            AtomicOp::And => combine(BinaryOp::And),
            AtomicOp::Or => combine(BinaryOp::Or),
            AtomicOp::Xor => combine(BinaryOp::Xor),
        };
        self.write(lane, place, 0, new)?;
        Ok(old)
    }
}

/// Returns the row and column of element `nth` of a lane, in the interpreter's own fragment layout,
/// which is that of PTX's `mma`. Backends may have others.
fn fragment_position(role: MatrixUse, lane: u32, nth: u32) -> [u32; 2] {
    let (group, pair) = (lane / 4, lane % 4 * 2 + nth % 2);
    let (second_pair, second_half) = (nth / 2 % 2 * 8, nth / 4 * 8);
    match role {
        MatrixUse::A | MatrixUse::C => [group + second_pair, pair + second_half],
        MatrixUse::B => [pair + second_pair, group + second_half],
    }
}
