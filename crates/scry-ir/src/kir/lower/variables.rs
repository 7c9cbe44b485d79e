//! Where variables are put.

use naga::{GlobalVariable, Handle};

use super::pointers::{Pointer, Root};
use super::types::Ty;
use super::{Lower, SPELLED, cooperative, too_complex};
use crate::ShaderError;
use crate::kir::{AddressSpace, Type};

/// A variable of more leaves than this is refused: nested structures can have 2^n in n lines.
const MAX_LEAVES: u64 = 1 << 16;

/// Where a variable is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    Workgroup,
    Local,
}

impl Lower<'_> {
    /// A new variable of an invocation: in registers, unless it is indexed by values or large.
    pub(super) fn variable(&mut self, ty: Ty, indexed: bool) -> Result<Pointer, ShaderError> {
        if indexed || self.types.scalars(ty) > SPELLED {
            return self.arrays(ty, Home::Local);
        }
        let first = self.builder.kir().vars.len() as u32;
        self.registers(ty)?;
        Ok(Pointer::new(Root::Vars(first), ty))
    }

    /// One register for each scalar of a type.
    fn registers(&mut self, ty: Ty) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.registers_of(scalar, 1),
            Ty::Vector { len, ty } => self.registers_of(ty, len),
            Ty::Matrix { columns, rows, ty } => self.registers_of(ty, columns * rows),
            Ty::Cooperative { ty: scalar, .. } => {
                self.registers_of(scalar, self.types.scalars(ty) as u8);
            }
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

    /// One array for each leaf of a type.
    fn arrays(&mut self, ty: Ty, home: Home) -> Result<Pointer, ShaderError> {
        if self.types.leaves(ty) > MAX_LEAVES {
            let message = format!("a variable's type has more than {MAX_LEAVES} members");
            return Err(too_complex(message));
        }
        let kir = self.builder.kir();
        let shared = home == Home::Workgroup;
        let first = if shared { kir.workgroup.len() } else { kir.locals.len() } as u32;
        self.leaves(ty, 1, home)?;
        Ok(Pointer { offset: 0, ..Pointer::new(Root::Leaves { shared, first }, ty) })
    }

    fn leaves(&mut self, ty: Ty, times: u32, home: Home) -> Result<(), ShaderError> {
        match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => self.leaf(scalar, times, 1, home),
            Ty::Vector { len, ty } => self.leaf(ty, times, len, home),
            Ty::Matrix { columns, rows, ty } => self.leaf(ty, times, columns * rows, home),
            Ty::Cooperative { .. } if home == Home::Workgroup => Err(cooperative::not_shared()),
            Ty::Cooperative { ty: scalar, .. } => {
                self.leaf(scalar, times, self.types.scalars(ty) as u8, home)
            }
            Ty::Array { len, .. } => {
                let times = times.checked_mul(len.unwrap_or(0)).ok_or_else(too_large)?;
                let element = self.types.element(ty)?;
                self.leaves(element.ty, times, home)
            }
            Ty::Struct(handle) => {
                for at in 0..self.types.member_count(handle) {
                    self.leaves(self.types.member(handle, at)?.ty, times, home)?;
                }
                Ok(())
            }
        }
    }

    fn leaf(&mut self, ty: Type, times: u32, count: u8, home: Home) -> Result<(), ShaderError> {
        let len = times.checked_mul(count.into()).ok_or_else(too_large)?;
        len.checked_mul(ty.size()).ok_or_else(too_large)?;
        match home {
            Home::Workgroup => self.builder.workgroup_array(ty, len),
            Home::Local => self.builder.local_array(ty, len),
        };
        Ok(())
    }

    /// The place of a global variable; made when it is first asked for.
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
            naga::AddressSpace::WorkGroup => self.arrays(ty, Home::Workgroup)?,
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

    /// Initial values of the private variables that have any.
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
