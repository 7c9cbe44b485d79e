//! Bounds of memory accesses: every index is clamped to the last one that is in bounds.
//!
//! Passes remove the clamps that are redundant, as they do for WGSL.

use super::invalid;
use super::rebuild::Rebuild;
use crate::ShaderError;
use crate::kir::{AddressSpace, BinaryOp, Block, Const, Inst, MatrixPlace, Place, Type, Value};

impl Rebuild<'_> {
    /// Returns the address of an access to `count` elements of a type, its index clamped to be in
    /// bounds.
    pub(super) fn clamp_place(
        &mut self,
        place: &Place,
        ty: Type,
        count: u32,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        let bytes = u64::from(ty.size()) * u64::from(count);
        let end = u64::from(place.offset) + bytes;
        match place.space {
            AddressSpace::Binding(binding) => self.clamp_in_buffer(place, binding, end, out),
            AddressSpace::Immediate => {
                self.clamp_in_array(place, self.kir.immediates.into(), end, out)
            }
            AddressSpace::Workgroup(nth) => {
                let size = self.kir.workgroup[nth as usize].size();
                self.clamp_in_array(place, size, end, out)
            }
            AddressSpace::Local(nth) => {
                let size = self.kir.locals[nth as usize].size();
                self.clamp_in_array(place, size, end, out)
            }
        }
    }

    /// Returns the memory of a matrix with an array that extends to the end of the buffer or array
    /// that it is in. Accesses test the length of this array, so claimed bounds are not needed. The
    /// array has no index: see [`require_unindexed`].
    pub(super) fn matrix_place(
        &mut self,
        place: &MatrixPlace,
        ty: Type,
    ) -> Result<MatrixPlace, ShaderError> {
        let element = ty.matrix().map_or(Type::F32, |matrix| matrix.element.ty());
        let (size, array) = (element.size(), place.array);
        let bytes = match array.space {
            AddressSpace::Binding(binding) => {
                self.require_size(binding, u64::from(array.offset) + u64::from(size))?;
                let len = Some(self.buffer_length(binding, array.offset, size));
                return Ok(MatrixPlace { len, ..*place });
            }
            AddressSpace::Immediate => self.kir.immediates.into(),
            AddressSpace::Workgroup(nth) => self.kir.workgroup[nth as usize].size(),
            AddressSpace::Local(nth) => self.kir.locals[nth as usize].size(),
        };
        // The verifier has checked that the first element is in bounds. Arrays are below 4 GiB.
        let len = (bytes - u64::from(array.offset)) / u64::from(size);
        let len = Some(self.constant(Const::u32(len as u32)));
        Ok(MatrixPlace { len, ..*place })
    }

    /// Clamps an index into memory of a constant size. `end` is the end of the access at index 0.
    fn clamp_in_array(
        &mut self,
        place: &Place,
        size: u64,
        end: u64,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        let Some(remaining) = size.checked_sub(end) else {
            let problem = format!("{} has {size} bytes, and is accessed up to {end}", place.space);
            return Err(invalid(problem));
        };
        let (Some(index), true) = (place.index, place.stride > 0) else {
            return Ok(Place { index: None, stride: 0, ..*place });
        };
        // Arrays are smaller than 4 GiB.
        let last = (remaining / u64::from(place.stride)) as u32;
        if last == 0 {
            return Ok(Place { index: None, stride: 0, ..*place });
        }
        let last = self.constant(Const::u32(last));
        let index = self.clamp_index(index, last, out);
        Ok(Place { index: Some(index), ..*place })
    }

    /// Clamps an index into a buffer. `end` is the end of the access at index 0, which the buffer
    /// has to contain.
    fn clamp_in_buffer(
        &mut self,
        place: &Place,
        binding: u32,
        end: u64,
        out: &mut Block,
    ) -> Result<Place, ShaderError> {
        self.require_size(binding, end)?;
        let is_first = |index: &Value| self.out.constant(*index).is_some_and(|c| c.bits == 0);
        let (Some(index), true) = (place.index.filter(|it| !is_first(it)), place.stride > 0) else {
            return Ok(Place { index: None, stride: 0, ..*place });
        };
        // The access at index `i` ends at byte `end + i * stride`, as does element `i` of an array
        // of elements of `stride` bytes from `start` on (or later, if `start` would be negative).
        // It is in bounds if `i` is below the length of that array, which is at least 1.
        let start = end.saturating_sub(place.stride.into());
        self.require_size(binding, start + u64::from(place.stride))?;
        let length = self.buffer_length(binding, start as u32, place.stride);
        let one = self.constant(Const::u32(1));
        let last = self.add(length, Type::U32, Inst::Binary(BinaryOp::Sub, length, one), out);
        let index = self.clamp_index(index, last, out);
        Ok(Place { index: Some(index), ..*place })
    }

    fn clamp_index(&mut self, index: Value, last: Value, out: &mut Block) -> Value {
        self.add(index, Type::U32, Inst::Binary(BinaryOp::Min, index, last), out)
    }

    /// Returns the length of a runtime-sized array that the kernel asks for. The buffer has to
    /// contain at least one element.
    pub(super) fn array_length(
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
        self.require_size(binding, u64::from(offset) + u64::from(stride))?;
        Ok(self.buffer_length(binding, offset, stride))
    }
}

/// Checks that the array of a matrix has no index. Operands must be those of the original kernel,
/// since the error names one.
pub(super) fn require_unindexed(array: &Place) -> Result<(), ShaderError> {
    if array.index.is_none() {
        return Ok(());
    }
    let problem = format!("the array of a matrix, {array}, has an index");
    Err(invalid(format!("{problem}; help: add it to the index of the matrix")))
}

/// Checks that an address space supports atomics of a type.
pub(super) fn check_atomic(space: AddressSpace, ty: Type) -> Result<(), ShaderError> {
    match space {
        AddressSpace::Workgroup(_) if ty.is_float() => {
            Err(invalid(format!("{space} has no atomics of {ty}: only buffers have")))
        }
        _ => Ok(()),
    }
}
