//! Access to members and elements of variables and values, and bounds checks of indices.

use std::rc::Rc;

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::{ElementIndex, Pointer, Root};
use super::types::Ty;
use crate::ShaderError;
use crate::kir::{AddressSpace, BinaryOp, Const, Value};

/// Maximum elements of a value that is indexed by a chain of selects; larger values are stored to
/// memory first.
const MAX_SELECTED: usize = 4;

/// Without bounds checks, constant indices into runtime-sized arrays become constant offsets if
/// they are below this number of bytes; larger ones could overflow the `u32` offset.
const MAX_CONSTANT_OFFSET: u64 = 1 << 24;

impl Lower<'_> {
    /// Lowers an access with a constant index.
    pub(super) fn access_index(&mut self, base: Expr, at: u32) -> Result<Operand, ShaderError> {
        match self.operand(base)? {
            Operand::Pointer(pointer) => Ok(Operand::Pointer(self.part(pointer, at)?)),
            Operand::Memory(pointer) => {
                let part = self.part(pointer, at)?;
                self.load_unchanging(part)
            }
            Operand::Zero => {
                let (ty, _) = self.part_of_value(self.ty(base)?, at)?;
                self.zero(ty)
            }
            Operand::Values(values) => {
                let (ty, first) = self.part_of_value(self.ty(base)?, at)?;
                let count = self.types.scalar_count(ty) as usize;
                Ok(Operand::Values(values[first..first + count].into()))
            }
        }
    }

    /// Returns a pointer to a member or an element.
    fn part(&mut self, pointer: Pointer, at: u32) -> Result<Pointer, ShaderError> {
        if let Ty::Struct(_) = pointer.ty {
            return self.member_of(pointer, at);
        }
        let index = self.constant(Const::u32(at));
        let at = self.clamp_index(&pointer, index)?;
        self.element_of(pointer, at)
    }

    /// Returns the type of a member or an element of a value, and the number of scalars before it.
    fn part_of_value(&self, ty: Ty, at: u32) -> Result<(Ty, usize), ShaderError> {
        if let Ty::Struct(handle) = ty {
            let member = self.types.member(handle, at)?;
            return Ok((member.ty, member.first_scalar as usize));
        }
        let element = self.types.element(ty)?.ty;
        Ok((element, at as usize * self.types.scalar_count(element) as usize))
    }

    /// Lowers an access with a computed index.
    pub(super) fn access(&mut self, base: Expr, index: Expr) -> Result<Operand, ShaderError> {
        let index = self.index(index)?;
        match self.operand(base)? {
            Operand::Pointer(pointer) => {
                let at = self.clamp_index(&pointer, index)?;
                Ok(Operand::Pointer(self.element_of(pointer, at)?))
            }
            Operand::Memory(pointer) => {
                let at = self.clamp_index(&pointer, index)?;
                let part = self.element_of(pointer, at)?;
                self.load_unchanging(part)
            }
            Operand::Zero => {
                let element = self.types.element(self.ty(base)?)?;
                self.zero(element.ty)
            }
            Operand::Values(values) => self.element_of_value(self.ty(base)?, &values, index),
        }
    }

    /// Returns an element of a value in registers.
    fn element_of_value(
        &mut self,
        ty: Ty,
        values: &Rc<[Value]>,
        index: Value,
    ) -> Result<Operand, ShaderError> {
        let element = self.types.element(ty)?;
        let count = (self.types.scalar_count(element.ty) as usize).max(1);
        let elements: Vec<_> = values.chunks(count).collect();
        if let Some(at) = self.builder.kir().constant(index) {
            let at = (at.bits as usize).min(elements.len().saturating_sub(1));
            return Ok(Operand::Values(elements[at].into()));
        }
        if elements.len() <= MAX_SELECTED {
            return Ok(Operand::Values(self.select_element(&elements, index)));
        }
        let memory = if let Some(constants) = self.hoist_constants(values) {
            self.constant_table(ty, &constants)?
        } else {
            let memory = self.allocate(ty, true)?;
            self.write_all(&memory, values)?;
            memory
        };
        let at = self.clamp_index(&memory, index)?;
        let part = self.element_of(memory, at)?;
        self.load_unchanging(part)
    }

    /// Emits selects that return the element at an index, or the last one if the index is out of
    /// bounds.
    fn select_element(&mut self, elements: &[&[Value]], index: Value) -> Rc<[Value]> {
        let (last, others) = elements.split_last().expect("no type is empty");
        let mut selected = last.to_vec();
        for (at, element) in others.iter().enumerate().rev() {
            let at = self.constant(Const::u32(at as u32));
            let is_it = self.builder.binary(BinaryOp::Eq, index, at);
            for (selected, &value) in selected.iter_mut().zip(*element) {
                *selected = self.builder.select(is_it, value, *selected);
            }
        }
        selected.into()
    }

    /// Clamps an index to the last element, unless it is proven to be in bounds or bounds checks
    /// are disabled.
    pub(super) fn clamp_index(
        &mut self,
        base: &Pointer,
        index: Value,
    ) -> Result<ElementIndex, ShaderError> {
        let constant = self.builder.kir().constant(index).map(|constant| constant.bits as u32);
        let element = self.types.element(base.ty)?;
        let is_near = |at: u32| u64::from(at) * u64::from(element.stride) < MAX_CONSTANT_OFFSET;
        let last = match (element.len, constant) {
            (Some(len), Some(at)) => {
                return Ok(ElementIndex::Constant(at.min(len.saturating_sub(1))));
            }
            // A binding has at least one element.
            (None, Some(0)) | (Some(1), None) => return Ok(ElementIndex::Constant(0)),
            (None, Some(at)) if !self.checked && is_near(at) => {
                return Ok(ElementIndex::Constant(at));
            }
            _ if !self.checked => return Ok(ElementIndex::Value(index)),
            (Some(len), None) => self.constant(Const::u32(len - 1)),
            (None, _) => self.last_index(base)?,
        };
        Ok(ElementIndex::Value(self.builder.binary(BinaryOp::Min, index, last)))
    }

    /// Returns the length of a runtime-sized array, computed once in the outermost block.
    pub(super) fn length(&mut self, array: &Pointer) -> Result<Value, ShaderError> {
        Ok(self.length_and_last_index(array)?.0)
    }

    fn last_index(&mut self, array: &Pointer) -> Result<Value, ShaderError> {
        Ok(self.length_and_last_index(array)?.1)
    }

    fn length_and_last_index(&mut self, array: &Pointer) -> Result<(Value, Value), ShaderError> {
        let (Root::Bytes(AddressSpace::Binding(binding)), Ty::Array { len: None, stride, .. }) =
            (array.root, array.ty)
        else {
            return Err(ShaderError::compiler(
                "the length of a type that is not a runtime-sized array".into(),
            ));
        };
        // A buffer has at most one runtime-sized array.
        if let Some(computed) = self.lengths[binding as usize] {
            return Ok(computed);
        }
        let one = self.constant(Const::u32(1));
        let inner = self.builder.set_aside();
        let length = self.builder.array_length(binding, array.offset, stride);
        let last = self.builder.binary(BinaryOp::Sub, length, one);
        self.builder.bring_back(inner);
        self.lengths[binding as usize] = Some((length, last));
        Ok((length, last))
    }
}
