//! Allocation of variables.

use naga::{GlobalVariable, Handle};

use super::pointers::{Pointer, Root};
use super::types::Ty;
use super::{Lower, MAX_SCALARISED, cooperative, too_complex};
use crate::ShaderError;
use crate::kir::{AddressSpace, Type};

/// Maximum leaves of a variable: the number grows exponentially with the nesting of structures.
const MAX_LEAVES: u64 = 1 << 16;

/// The memory of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrayMemory {
    Workgroup,
    Local,
}

impl Lower<'_> {
    /// Allocates a variable of an invocation: in registers, unless it is indexed by computed values
    /// or large.
    pub(super) fn variable(&mut self, ty: Ty, indexed: bool) -> Result<Pointer, ShaderError> {
        if indexed || self.types.scalars(ty) > MAX_SCALARISED {
            return self.arrays(ty, ArrayMemory::Local);
        }
        let first = self.builder.kir().vars.len() as u32;
        self.registers(ty)?;
        Ok(Pointer::new(Root::Vars(first), ty))
    }

    /// Allocates a register for each scalar of a type.
    fn registers(&mut self, ty: Ty) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.registers_of(scalar, 1),
            Ty::Vector { len, ty } => self.registers_of(ty, len),
            Ty::Matrix { columns, rows, ty } => self.registers_of(ty, columns * rows),
            Ty::Array { len, .. } => {
                let element = self.types.element(ty)?;
                for _ in 0..len.unwrap_or(0) {
                    self.registers(element.ty)?;
                }
            }
            Ty::Struct(handle) => {
                for at in 0..self.types.member_count(handle) {
                    self.registers(self.types.member(handle, at)?.ty)?;
                }
            }
        }
        Ok(())
    }

    fn registers_of(&mut self, scalar: Type, count: u8) {
        for _ in 0..count {
            self.builder.var(scalar);
        }
    }

    /// Allocates an array for each leaf of a type.
    fn arrays(&mut self, ty: Ty, memory: ArrayMemory) -> Result<Pointer, ShaderError> {
        if self.types.leaves(ty) > MAX_LEAVES {
            let message = format!("a variable's type has more than {MAX_LEAVES} members");
            return Err(too_complex(message));
        }
        let kir = self.builder.kir();
        let shared = memory == ArrayMemory::Workgroup;
        let first = if shared { kir.workgroup.len() } else { kir.locals.len() } as u32;
        self.leaves(ty, 1, memory)?;
        Ok(Pointer { offset: 0, ..Pointer::new(Root::Leaves { shared, first }, ty) })
    }

    fn leaves(&mut self, ty: Ty, times: u32, memory: ArrayMemory) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(Type::Matrix(_)) if memory == ArrayMemory::Workgroup => {
                Err(cooperative::not_shared())
            }
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.leaf(scalar, times, 1, memory),
            Ty::Vector { len, ty } => self.leaf(ty, times, len, memory),
            Ty::Matrix { columns, rows, ty } => self.leaf(ty, times, columns * rows, memory),
            Ty::Array { len, .. } => {
                let times = times.checked_mul(len.unwrap_or(0)).ok_or_else(too_large)?;
                let element = self.types.element(ty)?;
                self.leaves(element.ty, times, memory)
            }
            Ty::Struct(handle) => {
                for at in 0..self.types.member_count(handle) {
                    self.leaves(self.types.member(handle, at)?.ty, times, memory)?;
                }
                Ok(())
            }
        }
    }

    fn leaf(
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
        let ty = self.types.of(global.ty)?;
        let pointer = match global.space {
            naga::AddressSpace::Uniform | naga::AddressSpace::Storage { .. } => {
                Pointer::new(Root::Bytes(self.binding(global)?), ty)
            }
            naga::AddressSpace::Immediate => Pointer::new(Root::Bytes(AddressSpace::Immediate), ty),
            naga::AddressSpace::WorkGroup => self.arrays(ty, ArrayMemory::Workgroup)?,
            naga::AddressSpace::Private => {
                self.variable(ty, self.indexed.globals[handle.index()])?
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
            let mut all = self.interface.bindings.iter();
            all.position(|buffer| (buffer.group, buffer.binding) == (at.group, at.binding))
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
