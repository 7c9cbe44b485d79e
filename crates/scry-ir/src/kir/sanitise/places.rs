//! Bounds of memory accesses: every index is clamped to the last one that is in bounds.
//!
//! Passes remove the clamps that are redundant, as they do for WGSL.

use super::invalid;
use super::rebuild::Rebuild;
use crate::ShaderError;
use crate::kir::{AddressSpace, BinaryOp, Block, Const, Inst, MatrixPlace, Place, Type, Value};

impl Rebuild<'_> {
    /// Returns a place of an access to `count` elements of a type, in bounds for every index.
    pub(super) fn clamped(
        &mut self,
        place: &Place,
        ty: Type,
        count: u32,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        let bytes = u64::from(ty.size()) * u64::from(count);
        let end = u64::from(place.offset) + bytes;
        match place.space {
            AddressSpace::Binding(binding) => self.in_buffer(place, binding, end, out),
            AddressSpace::Immediate => self.in_array(place, self.kir.immediates.into(), end, out),
            AddressSpace::Workgroup(nth) => {
                let size = self.kir.workgroup[nth as usize].size();
                self.in_array(place, size, end, out)
            }
            AddressSpace::Local(nth) => {
                let size = self.kir.locals[nth as usize].size();
                self.in_array(place, size, end, out)
            }
        }
    }

    /// Returns a place of a matrix in an array that ends where its memory does, whose length is
    /// tested for every element.
    pub(super) fn matrix_place(
        &mut self,
        place: &MatrixPlace,
        ty: Type,
    ) -> Result<MatrixPlace, ShaderError> {
        let element = ty.matrix().map_or(Type::F32, |matrix| matrix.element.ty());
        let (size, array) = (element.size(), place.array);
        if array.index.is_some() {
            let problem = format!("the array of a matrix, {array}, has an index");
            return Err(invalid(format!("{problem}; help: add it to the index of the matrix")));
        }
        let bytes = match array.space {
            AddressSpace::Binding(binding) => {
                self.require(binding, u64::from(array.offset) + u64::from(size))?;
                let len = Some(self.length(binding, array.offset, size));
                return Ok(MatrixPlace { len, ..*place });
            }
            AddressSpace::Immediate => self.kir.immediates.into(),
            AddressSpace::Workgroup(nth) => self.kir.workgroup[nth as usize].size(),
            AddressSpace::Local(nth) => self.kir.locals[nth as usize].size(),
        };
        // The verifier has found the first element inside. Arrays are smaller than 4 GiB.
        let len = (bytes - u64::from(array.offset)) / u64::from(size);
        let len = Some(self.constant(Const::u32(len as u32)));
        Ok(MatrixPlace { len, ..*place })
    }

    /// Clamps an index into memory of a constant size. `end` is the end of the access at index 0.
    fn in_array(
        &mut self,
        place: &Place,
        size: u64,
        end: u64,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        let Some(free) = size.checked_sub(end) else {
            let problem = format!("{} has {size} bytes, and is accessed up to {end}", place.space);
            return Err(invalid(problem));
        };
        let (Some(index), true) = (place.index, place.stride > 0) else {
            return Ok(Place { index: None, stride: 0, ..*place });
        };
        // Arrays are smaller than 4 GiB.
        let last = (free / u64::from(place.stride)) as u32;
        if last == 0 {
            return Ok(Place { index: None, stride: 0, ..*place });
        }
        let last = self.constant(Const::u32(last));
        let index = self.at_most(index, last, out);
        Ok(Place { index: Some(index), ..*place })
    }

    /// Clamps an index into a buffer, of which the access at index 0 has to be in bounds.
    fn in_buffer(
        &mut self,
        place: &Place,
        binding: u32,
        end: u64,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        self.require(binding, end)?;
        let is_first = |index: &Value| self.out.constant(*index).is_some_and(|c| c.bits == 0);
        let (Some(index), true) = (place.index.filter(|it| !is_first(it)), place.stride > 0) else {
            return Ok(Place { index: None, stride: 0, ..*place });
        };
        // The elements of an array that begins there are in bounds with the indices below its
        // length, which is at least 1.
        let start = end.saturating_sub(place.stride.into());
        self.require(binding, start + u64::from(place.stride))?;
        let length = self.length(binding, start as u32, place.stride);
        let one = self.constant(Const::u32(1));
        let last = self.add(length, Type::U32, Inst::Binary(BinaryOp::Sub, length, one), out);
        let index = self.at_most(index, last, out);
        Ok(Place { index: Some(index), ..*place })
    }

    fn at_most(&mut self, index: Value, last: Value, out: &mut Block) -> Value {
        self.add(index, Type::U32, Inst::Binary(BinaryOp::Min, index, last), out)
    }

    /// Returns the length of an array that the kernel asks for, which has at least one element.
    pub(super) fn declared_length(
        &mut self,
        binding: u32,
        offset: u32,
        stride: u32,
    ) -> Result<Value, ShaderError> {
        let unit = self.kir.buffers[binding as usize].element.size().min(4);
        if !offset.is_multiple_of(unit) || !stride.is_multiple_of(unit) {
            return Err(invalid(format!(
                "the length of an array in binding{binding} from byte {offset} by {stride} bytes \
                 is not a number of elements of {unit} bytes"
            )));
        }
        self.require(binding, u64::from(offset) + u64::from(stride))?;
        Ok(self.length(binding, offset, stride))
    }
}

/// Checks that memory has atomics of a type.
pub(super) fn check_atomic(space: AddressSpace, ty: Type) -> Result<(), ShaderError> {
    match space {
        AddressSpace::Workgroup(_) if ty.is_float() => {
            Err(invalid(format!("{space} has no atomics of {ty}: only buffers have")))
        }
        _ => Ok(()),
    }
}
