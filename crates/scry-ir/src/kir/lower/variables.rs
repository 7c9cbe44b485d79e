//! Allocation of variables.

use naga::{GlobalVariable, Handle};

use super::pointers::{Pointer, Root};
use super::types::Ty;
use super::{Lower, MAX_SCALARISED, cooperative, too_complex};
use crate::ShaderError;
use crate::kir::{AddressSpace, Type};

/// Maximum leaves of a variable; their number can grow exponentially with the nesting of
/// structures.
const MAX_LEAVES: u64 = 1 << 16;

/// Where an array is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayMemory {
    Workgroup,
    Local,
}

impl Lower<'_> {
    /// Allocates a variable of an invocation: in registers, unless `in_memory` is true or the
    /// variable is large. A variable that is indexed by computed values must be in memory.
    pub(super) fn allocate(&mut self, ty: Ty, in_memory: bool) -> Result<Pointer, ShaderError> {
        if in_memory || self.types.scalar_count(ty) > MAX_SCALARISED {
            return self.allocate_arrays(ty, ArrayMemory::Local);
        }
        let first = self.builder.kir().vars.len() as u32;
        self.allocate_registers(ty)?;
        Ok(Pointer::new(Root::Vars(first), ty))
    }

    /// Allocates a register for each scalar of a type.
    fn allocate_registers(&mut self, ty: Ty) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.add_registers(scalar, 1),
            Ty::Vector { len, ty } => self.add_registers(ty, len),
            Ty::Matrix { columns, rows, ty } => self.add_registers(ty, columns * rows),
            Ty::Array { len, .. } => {
                let element = self.types.element(ty)?;
                for _ in 0..len.unwrap_or(0) {
                    self.allocate_registers(element.ty)?;
                }
            }
            Ty::Struct(handle) => {
                for at in 0..self.types.member_count(handle) {
                    self.allocate_registers(self.types.member(handle, at)?.ty)?;
                }
            }
        }
        Ok(())
    }

    fn add_registers(&mut self, scalar: Type, count: u8) {
        for _ in 0..count {
            self.builder.var(scalar);
        }
    }

    /// Allocates an array for each leaf of a type.
    fn allocate_arrays(&mut self, ty: Ty, memory: ArrayMemory) -> Result<Pointer, ShaderError> {
        if self.types.leaf_count(ty) > MAX_LEAVES {
            let message = format!("a variable's type has more than {MAX_LEAVES} members");
            return Err(too_complex(message));
        }
        let kir = self.builder.kir();
        let shared = memory == ArrayMemory::Workgroup;
        let first = if shared { kir.workgroup.len() } else { kir.locals.len() } as u32;
        self.allocate_leaves(ty, 1, memory)?;
        Ok(Pointer::new(Root::Leaves { shared, first }, ty))
    }

    /// Allocates an array for each leaf of a type, with room for `times` values of the type.
    fn allocate_leaves(
        &mut self,
        ty: Ty,
        times: u32,
        memory: ArrayMemory,
    ) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(Type::Matrix(_)) if memory == ArrayMemory::Workgroup => {
                Err(cooperative::workgroup_matrix_error())
            }
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.allocate_leaf(scalar, times, 1, memory),
            Ty::Vector { len, ty } => self.allocate_leaf(ty, times, len, memory),
            Ty::Matrix { columns, rows, ty } => {
                self.allocate_leaf(ty, times, columns * rows, memory)
            }
            Ty::Array { len, .. } => {
                let times = times.checked_mul(len.unwrap_or(0)).ok_or_else(too_large)?;
                let element = self.types.element(ty)?;
                self.allocate_leaves(element.ty, times, memory)
            }
            Ty::Struct(handle) => {
                for at in 0..self.types.member_count(handle) {
                    self.allocate_leaves(self.types.member(handle, at)?.ty, times, memory)?;
                }
                Ok(())
            }
        }
    }

    /// Allocates an array of `times` leaves of `count` scalars each.
    fn allocate_leaf(
        &mut self,
        ty: Type,
        times: u32,
        count: u8,
        memory: ArrayMemory,
    ) -> Result<(), ShaderError> {
        let len = times.checked_mul(count.into()).ok_or_else(too_large)?;
        len.checked_mul(ty.size()).ok_or_else(too_large)?;
        match memory {
            ArrayMemory::Workgroup => self.builder.workgroup_array(ty, len),
            ArrayMemory::Local => self.builder.local_array(ty, len),
        };
        Ok(())
    }

    /// Returns a pointer to a global variable, which is allocated at its first use.
    pub(super) fn global(
        &mut self,
        handle: Handle<GlobalVariable>,
    ) -> Result<Pointer, ShaderError> {
        if let Some(pointer) = self.globals[handle.index()] {
            return Ok(pointer);
        }
        let global = &self.module.global_variables[handle];
        let ty = self.types.ty_of(global.ty)?;
        let pointer = match global.space {
            naga::AddressSpace::Uniform | naga::AddressSpace::Storage { .. } => {
                Pointer::new(Root::Bytes(self.binding(global)?), ty)
            }
            naga::AddressSpace::Immediate => Pointer::new(Root::Bytes(AddressSpace::Immediate), ty),
            naga::AddressSpace::WorkGroup => self.allocate_arrays(ty, ArrayMemory::Workgroup)?,
            naga::AddressSpace::Private => {
                self.allocate(ty, self.indexed.globals[handle.index()])?
            }
            space => {
                let what = format!("a variable in address space {space:?}");
                return Err(ShaderError::compiler(what));
            }
        };
        self.globals[handle.index()] = Some(pointer);
        Ok(pointer)
    }

    fn binding(&self, global: &GlobalVariable) -> Result<AddressSpace, ShaderError> {
        let found = global.binding.as_ref().and_then(|at| {
            let mut bindings = self.interface.bindings.iter();
            bindings.position(|buffer| (buffer.group, buffer.binding) == (at.group, at.binding))
        });
        let at = found
            .ok_or_else(|| ShaderError::compiler("a buffer that the interface lacks".into()))?;
        Ok(AddressSpace::Binding(at as u32))
    }

    /// Initialises private variables.
    pub(super) fn initialise_private(&mut self) -> Result<(), ShaderError> {
        let module = self.module;
        for (handle, global) in module.global_variables.iter() {
            if let (naga::AddressSpace::Private, Some(init)) = (global.space, global.init) {
                let pointer = self.global(handle)?;
                let value = self.global_expression(init)?;
                self.store(&pointer, &value)?;
            }
        }
        Ok(())
    }
}

fn too_large() -> ShaderError {
    too_complex("a variable is larger than 4 GiB".into())
}
