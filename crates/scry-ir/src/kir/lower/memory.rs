//! Reading and writing variables of any type, scalar by scalar or, if large, in loops.

use std::rc::Rc;

use super::frame::Operand;
use super::pointers::{ElementIndex, Pointer, Root};
use super::types::Ty;
use super::{Lower, MAX_SCALARISED};
use crate::ShaderError;
use crate::kir::{AtomicOp, Barrier, BinaryOp, Const, Stmt, Type, Value, Var};

impl Lower<'_> {
    /// Lowers a load.
    pub(super) fn load(&mut self, pointer: &Pointer) -> Result<Operand, ShaderError> {
        if self.types.scalar_count(pointer.ty) > MAX_SCALARISED {
            let copy = self.allocate(pointer.ty, true)?;
            self.copy(&copy, pointer)?;
            return Ok(Operand::Memory(copy));
        }
        Ok(Operand::Values(self.read_all(pointer)?))
    }

    /// Lowers `workgroupUniformLoad`. A large value is copied to local memory between two barriers;
    /// the uniformity analysis then classifies it as varying.
    pub(super) fn load_uniform(&mut self, pointer: &Pointer) -> Result<Operand, ShaderError> {
        if self.types.scalar_count(pointer.ty) > MAX_SCALARISED {
            self.builder.barrier(Barrier::Workgroup);
            let value = self.load(pointer)?;
            self.builder.barrier(Barrier::Workgroup);
            return Ok(value);
        }
        let mut values = Vec::new();
        self.read_uniform(pointer, &mut values)?;
        Ok(Operand::Values(values.into()))
    }

    fn read_uniform(&mut self, pointer: &Pointer, out: &mut Vec<Value>) -> Result<(), ShaderError> {
        let (ty, count) = match pointer.ty {
            Ty::Scalar(ty) | Ty::Atomic(ty) => (ty, 1),
            Ty::Vector { len, ty } => (ty, len),
            _ => {
                return self
                    .for_each_part(pointer, &mut |this, part| this.read_uniform(&part, out));
            }
        };
        self.spend(count.into())?;
        let place = self.place(pointer, ty)?;
        out.extend(self.builder.workgroup_uniform_load(ty, place, count));
        Ok(())
    }

    /// Lowers a load from memory that is not written while the value is used: a large value is not
    /// copied.
    pub(super) fn load_unchanging(&mut self, pointer: Pointer) -> Result<Operand, ShaderError> {
        if self.types.scalar_count(pointer.ty) > MAX_SCALARISED {
            return Ok(Operand::Memory(pointer));
        }
        self.load(&pointer)
    }

    /// Stores to the target of a pointer.
    pub(super) fn store(&mut self, to: &Pointer, operand: &Operand) -> Result<(), ShaderError> {
        match operand {
            Operand::Values(values) => self.write_all(to, values),
            Operand::Memory(from) => self.copy(to, from),
            Operand::Zero => self.clear(to),
            Operand::Pointer(_) => Err(ShaderError::compiler("a pointer is stored".into())),
        }
    }

    /// Returns the scalars of an operand of type `ty`.
    pub(super) fn scalars_of(
        &mut self,
        operand: &Operand,
        ty: Ty,
    ) -> Result<Rc<[Value]>, ShaderError> {
        match operand {
            Operand::Values(values) => Ok(values.clone()),
            Operand::Memory(pointer) => self.read_all(pointer),
            Operand::Zero => self.zeros(ty),
            Operand::Pointer(_) => {
                Err(ShaderError::compiler("a pointer where a value belongs".into()))
            }
        }
    }

    fn read_all(&mut self, pointer: &Pointer) -> Result<Rc<[Value]>, ShaderError> {
        let mut values = Vec::new();
        self.read(pointer, &mut values)?;
        Ok(values.into())
    }

    /// Loads a value and appends its scalars.
    fn read(&mut self, pointer: &Pointer, out: &mut Vec<Value>) -> Result<(), ShaderError> {
        match pointer.ty {
            Ty::Scalar(ty) => self.read_run(pointer, ty, 1, out),
            Ty::Vector { len, ty } => self.read_run(pointer, ty, len, out),
            Ty::Atomic(ty) => {
                let place = self.place(pointer, ty)?;
                out.push(self.builder.atomic(ty, AtomicOp::Load, place, None, None));
                Ok(())
            }
            _ => self.for_each_part(pointer, &mut |this, part| this.read(&part, out)),
        }
    }

    /// Loads up to four contiguous scalars.
    fn read_run(
        &mut self,
        pointer: &Pointer,
        ty: Type,
        count: u8,
        out: &mut Vec<Value>,
    ) -> Result<(), ShaderError> {
        self.spend(count.into())?;
        if let Root::Vars(first) = pointer.root {
            out.extend((0..u32::from(count)).map(|at| self.builder.get(Var(first + at))));
        } else {
            let place = self.place(pointer, ty)?;
            out.extend(self.builder.load(ty, place, count));
        }
        Ok(())
    }

    /// Stores the scalars of a value.
    pub(super) fn write_all(
        &mut self,
        pointer: &Pointer,
        values: &[Value],
    ) -> Result<(), ShaderError> {
        let mut remaining = values;
        self.write(pointer, &mut remaining)
    }

    /// Stores a value, whose scalars are the first of `values`, and removes them from the list.
    fn write(&mut self, pointer: &Pointer, values: &mut &[Value]) -> Result<(), ShaderError> {
        match pointer.ty {
            Ty::Scalar(ty) => self.write_run(pointer, ty, 1, values),
            Ty::Vector { len, ty } => self.write_run(pointer, ty, len.into(), values),
            Ty::Atomic(ty) => {
                let value = split_off_first(values, 1)?[0];
                let place = self.place(pointer, ty)?;
                self.builder.atomic(ty, AtomicOp::Store, place, Some(value), None);
                Ok(())
            }
            _ => self.for_each_part(pointer, &mut |this, part| this.write(&part, values)),
        }
    }

    /// Stores up to four contiguous scalars.
    fn write_run(
        &mut self,
        pointer: &Pointer,
        ty: Type,
        count: usize,
        values: &mut &[Value],
    ) -> Result<(), ShaderError> {
        self.spend(count)?;
        let run = split_off_first(values, count)?;
        if let Root::Vars(first) = pointer.root {
            for (at, &value) in (first..).zip(run) {
                self.builder.set(Var(at), value);
            }
        } else {
            let place = self.place(pointer, ty)?;
            self.builder.store(place, run.to_vec());
        }
        Ok(())
    }

    /// Calls `visit` with a pointer to each member, element or column, in order.
    pub(super) fn for_each_part(
        &mut self,
        pointer: &Pointer,
        visit: &mut dyn FnMut(&mut Self, Pointer) -> Result<(), ShaderError>,
    ) -> Result<(), ShaderError> {
        if let Ty::Struct(handle) = pointer.ty {
            for at in 0..self.types.member_count(handle) {
                let part = self.member_of(*pointer, at)?;
                visit(self, part)?;
            }
            return Ok(());
        }
        let len = self.types.element(pointer.ty)?.len;
        for at in 0..len.unwrap_or(0) {
            let part = self.element_of(*pointer, ElementIndex::Constant(at))?;
            visit(self, part)?;
        }
        Ok(())
    }

    /// Copies a value of any size. Source and target are the same or do not overlap.
    fn copy(&mut self, to: &Pointer, from: &Pointer) -> Result<(), ShaderError> {
        if self.types.scalar_count(to.ty) <= MAX_SCALARISED {
            let values = self.read_all(from)?;
            return self.write_all(to, &values);
        }
        if let Ty::Struct(handle) = to.ty {
            for at in 0..self.types.member_count(handle) {
                let (to, from) = (self.member_of(*to, at)?, self.member_of(*from, at)?);
                self.copy(&to, &from)?;
            }
            return Ok(());
        }
        self.emit_element_loop(to.ty, &mut |this, at| {
            let (to, from) = (this.element_of(*to, at)?, this.element_of(*from, at)?);
            this.copy(&to, &from)
        })
    }

    /// Sets a variable of any size to zero.
    pub(super) fn clear(&mut self, to: &Pointer) -> Result<(), ShaderError> {
        if self.types.scalar_count(to.ty) <= MAX_SCALARISED {
            let zeros = self.zeros(to.ty)?;
            return self.write_all(to, &zeros);
        }
        if let Ty::Struct(handle) = to.ty {
            for at in 0..self.types.member_count(handle) {
                let to = self.member_of(*to, at)?;
                self.clear(&to)?;
            }
            return Ok(());
        }
        self.emit_element_loop(to.ty, &mut |this, at| {
            let to = this.element_of(*to, at)?;
            this.clear(&to)
        })
    }

    /// Emits a loop over the elements of an array; `body` emits the body for the element at an
    /// index.
    fn emit_element_loop(
        &mut self,
        array: Ty,
        body: &mut dyn FnMut(&mut Self, ElementIndex) -> Result<(), ShaderError>,
    ) -> Result<(), ShaderError> {
        let len = self.types.element(array)?.len.unwrap_or(0);
        let (zero, one) = (self.constant(Const::u32(0)), self.constant(Const::u32(1)));
        let len = self.constant(Const::u32(len));
        let counter = self.builder.var(Type::U32);
        self.builder.set(counter, zero);
        let label = self.builder.label();
        self.builder.open();
        let at = self.builder.get(counter);
        let done = self.builder.binary(BinaryOp::Ge, at, len);
        self.builder.if_then(done, |b| b.break_to(label));
        body(self, ElementIndex::Value(at))?;
        let next = self.builder.binary(BinaryOp::Add, at, one);
        self.builder.set(counter, next);
        let body = self.builder.close();
        self.builder.push(Stmt::Loop { label, body, finite: true });
        Ok(())
    }
}

/// Splits off the first values of a list.
fn split_off_first<'a>(values: &mut &'a [Value], count: usize) -> Result<&'a [Value], ShaderError> {
    let (first, rest) = values
        .split_at_checked(count)
        .ok_or_else(|| ShaderError::compiler("a value has fewer parts than its type".into()))?;
    *values = rest;
    Ok(first)
}
