//! Constants: computed once, in the outermost block before the statement that first uses them, so
//! that they are visible in all code that is lowered later.

use std::rc::Rc;

use naga::{Expression, Handle, Literal};

use super::frame::Operand;
use super::pointers::Pointer;
use super::types::Ty;
use super::{Lower, MAX_SCALARISED};
use crate::ShaderError;
use crate::kir::{Const, MatrixType, Type, Value};

impl Lower<'_> {
    /// Returns a constant, computed in the outermost block.
    pub(super) fn constant(&mut self, constant: Const) -> Value {
        if let Some(value) = self.constants.get(&constant) {
            return *value;
        }
        let inner = self.builder.set_aside();
        let value = self.builder.constant(constant);
        self.builder.bring_back(inner);
        self.constants.insert(constant, value);
        value
    }

    /// Returns the same values, computed in the outermost block, if all of them are constants.
    pub(super) fn hoist_constants(&mut self, values: &[Value]) -> Option<Rc<[Value]>> {
        if values.iter().any(|value| self.builder.kir().constant(*value).is_none()) {
            return None;
        }
        let mut constants = Vec::with_capacity(values.len());
        for value in values {
            let constant = self.builder.kir().constant(*value)?;
            constants.push(self.constant(constant));
        }
        Some(constants.into())
    }

    /// Lowers a literal.
    pub(super) fn literal(&mut self, literal: Literal) -> Result<Operand, ShaderError> {
        let value = self.constant(literal_constant(literal)?);
        Ok(Operand::Values([value].into()))
    }

    /// Returns the zero of a type.
    pub(super) fn zero(&mut self, ty: Ty) -> Result<Operand, ShaderError> {
        if self.types.scalar_count(ty) > MAX_SCALARISED {
            return Ok(Operand::Zero);
        }
        Ok(Operand::Values(self.zeros(ty)?))
    }

    /// Returns the scalars of the zero of a type.
    pub(super) fn zeros(&mut self, ty: Ty) -> Result<Rc<[Value]>, ShaderError> {
        let mut values = Vec::new();
        self.add_zeros(ty, &mut values)?;
        Ok(values.into())
    }

    fn add_zeros(&mut self, ty: Ty, out: &mut Vec<Value>) -> Result<(), ShaderError> {
        let (scalar, count) = match ty {
            Ty::Scalar(scalar) | Ty::Atomic(scalar) => (scalar, 1),
            Ty::Vector { len, ty } => (ty, len),
            Ty::Matrix { columns, rows, ty } => (ty, columns * rows),
            Ty::Array { len, .. } => {
                let element = self.types.element(ty)?.ty;
                return (0..len.unwrap_or(0)).try_for_each(|_| self.add_zeros(element, out));
            }
            Ty::Struct(handle) => {
                return (0..self.types.member_count(handle)).try_for_each(|at| {
                    let member = self.types.member(handle, at)?;
                    self.add_zeros(member.ty, out)
                });
            }
        };
        self.spend(count.into())?;
        let zero = match scalar {
            Type::Matrix(matrix) => self.zero_matrix(matrix),
            _ => self.constant(Const::zero(scalar)),
        };
        out.extend(std::iter::repeat_n(zero, count.into()));
        Ok(())
    }

    /// Returns a matrix of zeros, computed in the outermost block.
    fn zero_matrix(&mut self, matrix: MatrixType) -> Value {
        let zero = self.constant(Const::zero(matrix.element.ty()));
        let inner = self.builder.set_aside();
        let filled = self.builder.matrix_fill(matrix, zero);
        self.builder.bring_back(inner);
        filled
    }

    /// Lowers a constant expression of the module.
    pub(super) fn global_expression(
        &mut self,
        handle: Handle<Expression>,
    ) -> Result<Operand, ShaderError> {
        if let Some(operand) = &self.global_expressions[handle.index()] {
            return Ok(operand.clone());
        }
        let module = self.module;
        let operand = match &module.global_expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal)?,
            Expression::Constant(constant) => {
                self.global_expression(module.constants[*constant].init)?
            }
            Expression::ZeroValue(ty) => self.zero(self.types.ty_of(*ty)?)?,
            Expression::Splat { size, value } => {
                let value = self.global_expression(*value)?;
                splat(&value, *size)?
            }
            Expression::Compose { ty, components } => {
                let mut parts = Vec::with_capacity(components.len());
                for part in components {
                    parts.push(self.global_expression(*part)?);
                }
                self.compose(self.types.ty_of(*ty)?, &parts)?
            }
            _ => return Err(ShaderError::compiler("a constant that was not computed".into())),
        };
        self.global_expressions[handle.index()] = Some(operand.clone());
        Ok(operand)
    }

    /// Lowers a constructor of a vector, matrix, array or structure.
    pub(super) fn compose(&mut self, ty: Ty, parts: &[Operand]) -> Result<Operand, ShaderError> {
        if self.types.scalar_count(ty) > MAX_SCALARISED {
            return self.compose_large(ty, parts);
        }
        let mut values = Vec::new();
        for part in parts {
            let Operand::Values(part) = part else {
                return Err(ShaderError::compiler("a part larger than the whole".into()));
            };
            values.extend_from_slice(part);
        }
        Ok(Operand::Values(values.into()))
    }

    /// Lowers a constructor of a value in memory. The parts are stored in the outermost block if
    /// they are constants.
    fn compose_large(&mut self, ty: Ty, parts: &[Operand]) -> Result<Operand, ShaderError> {
        let memory = self.allocate(ty, true)?;
        let constants = self.hoist_constant_parts(parts);
        let inner = if constants.is_some() { self.builder.set_aside() } else { Vec::new() };
        let mut parts = constants.as_deref().unwrap_or(parts).iter();
        self.for_each_part(&memory, &mut |this, part| match parts.next() {
            Some(value) => this.store(&part, value),
            None => Err(ShaderError::compiler("a value lacks a part".into())),
        })?;
        self.builder.bring_back(inner);
        Ok(Operand::Memory(memory))
    }

    /// Returns the same parts, computed in the outermost block, if all of them are constants.
    fn hoist_constant_parts(&mut self, parts: &[Operand]) -> Option<Vec<Operand>> {
        let mut constants = Vec::with_capacity(parts.len());
        for part in parts {
            let Operand::Values(values) = part else { return None };
            constants.push(Operand::Values(self.hoist_constants(values)?));
        }
        Some(constants)
    }

    /// Returns memory with these constants, which is filled in the outermost block.
    pub(super) fn constant_table(
        &mut self,
        ty: Ty,
        values: &Rc<[Value]>,
    ) -> Result<Pointer, ShaderError> {
        if let Some(pointer) = self.tables.get(&(ty, values.clone())) {
            return Ok(*pointer);
        }
        let pointer = self.allocate(ty, true)?;
        let inner = self.builder.set_aside();
        self.write_all(&pointer, values)?;
        self.builder.bring_back(inner);
        self.tables.insert((ty, values.clone()), pointer);
        Ok(pointer)
    }
}

/// Returns a vector of equal components.
pub(super) fn splat(value: &Operand, size: naga::VectorSize) -> Result<Operand, ShaderError> {
    match value {
        Operand::Values(values) if values.len() == 1 => {
            Ok(Operand::Values(vec![values[0]; size as usize].into()))
        }
        _ => Err(ShaderError::compiler("a splat of a value that is not a scalar".into())),
    }
}

fn literal_constant(literal: Literal) -> Result<Const, ShaderError> {
    let (ty, bits) = match literal {
        Literal::F64(x) => (Type::F64, x.to_bits()),
        Literal::F32(x) => (Type::F32, x.to_bits().into()),
        Literal::F16(x) => (Type::F16, x.to_bits().into()),
        Literal::U16(x) => (Type::U16, x.into()),
        Literal::I16(x) => (Type::I16, (x as u16).into()),
        Literal::U32(x) => (Type::U32, x.into()),
        Literal::I32(x) => (Type::I32, (x as u32).into()),
        Literal::U64(x) => (Type::U64, x),
        Literal::I64(x) => (Type::I64, x as u64),
        Literal::Bool(x) => (Type::Bool, x.into()),
        Literal::AbstractInt(_) | Literal::AbstractFloat(_) => {
            return Err(ShaderError::compiler("a literal without a type".into()));
        }
    };
    Ok(Const { ty, bits })
}
