//! Cooperative matrices: loads, stores and products.

use naga::{CooperativeData, Expression};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::{ElementIndex, Pointer, Root};
use super::types::Ty;
use crate::kir::{AddressSpace, Const, MatrixPlace, MatrixType, Type, Value};
use crate::{ShaderError, ShaderErrorKind};

impl Lower<'_> {
    /// Lowers a load of a matrix. Elements out of bounds of the array are zero.
    pub(super) fn cooperative_load(
        &mut self,
        ty: Ty,
        data: CooperativeData,
    ) -> Result<Vec<Value>, ShaderError> {
        let ty = matrix_type(ty)?;
        let place = self.matrix_place(ty, data)?;
        Ok(vec![self.builder.matrix_load(ty, place)])
    }

    /// Lowers a store of a matrix. Elements out of bounds of the array are not stored.
    pub(super) fn cooperative_store(
        &mut self,
        target: Expr,
        data: CooperativeData,
    ) -> Result<(), ShaderError> {
        let values = self.values(target)?;
        let place = self.matrix_place(matrix_type(self.ty(target)?)?, data)?;
        self.builder.matrix_store(place, values[0]);
        Ok(())
    }

    /// Returns the memory operand of a load or store of a matrix.
    fn matrix_place(
        &mut self,
        ty: MatrixType,
        data: CooperativeData,
    ) -> Result<MatrixPlace, ShaderError> {
        self.spend(1)?;
        let (array, index) = self.array_and_index(data)?;
        let element = self.types.element(array.ty)?;
        let Ty::Scalar(scalar) = element.ty else { return Err(not_an_array_element()) };
        if scalar != ty.element.ty() {
            let what = format!("a matrix of {} in an array of {scalar}", ty.element.ty());
            return Err(ShaderError::compiler(what));
        }
        let len = match (self.checked, element.len) {
            (false, _) => None,
            (true, Some(len)) => Some(self.constant(Const::u32(len))),
            (true, None) => Some(self.length(&array)?),
        };
        let stride = self.index(data.stride)?;
        let first = self.element_of(array, ElementIndex::Constant(0))?;
        let array = self.place(&first, scalar)?;
        Ok(MatrixPlace { array, len, index, stride, row_major: data.row_major })
    }

    /// Returns the array that a matrix is in, and the index of its first element.
    fn array_and_index(&mut self, data: CooperativeData) -> Result<(Pointer, Value), ShaderError> {
        let (array, index) = match *self.frame.expression(data.pointer) {
            Expression::Access { base, index } => (base, self.index(index)?),
            Expression::AccessIndex { base, index } => (base, self.constant(Const::u32(index))),
            _ => return Err(not_an_array_element()),
        };
        let Operand::Pointer(array) = self.operand(array)? else {
            return Err(not_an_array_element());
        };
        let Ty::Array { .. } = array.ty else { return Err(not_an_array_element()) };
        let shared = match array.root {
            Root::Bytes(space) => !matches!(space, AddressSpace::Local(_)),
            Root::Leaves { shared, .. } => shared,
            Root::Vars(_) => false,
        };
        if shared { Ok((array, index)) } else { Err(not_an_array_element()) }
    }

    /// Lowers `a * b + c`.
    pub(super) fn cooperative_multiply_add(
        &mut self,
        operands: [Expr; 3],
    ) -> Result<Vec<Value>, ShaderError> {
        let [a, b, c] = operands;
        check_product([self.ty(a)?, self.ty(b)?, self.ty(c)?])?;
        let (a, b, c) = (self.values(a)?, self.values(b)?, self.values(c)?);
        Ok(vec![self.builder.multiply_add(a[0], b[0], c[0])])
    }
}

fn matrix_type(ty: Ty) -> Result<MatrixType, ShaderError> {
    match ty {
        Ty::Scalar(Type::Matrix(matrix)) => Ok(matrix),
        _ => Err(ShaderError::compiler("a cooperative operation on a non-matrix type".into())),
    }
}

/// Checks the types of a multiply-add.
fn check_product(types: [Ty; 3]) -> Result<(), ShaderError> {
    let [a, b, c] = types.map(matrix_type);
    let (a, b, c) = (a?, b?, c?);
    if a.size != b.size || a.size != c.size {
        return Err(invalid("the matrices of `coopMultiplyAdd` must have the same size"));
    }
    if MatrixType::multiplies(a, b, c) {
        return Ok(());
    }
    let [left, right, result] = [a, b, c].map(|matrix| matrix.element.ty());
    Err(invalid(&format!(
        "`coopMultiplyAdd` is not defined for ({left}, {right}, {result}): the operands \
         must both be f16, or all three matrices f32"
    )))
}

/// Returns the error for a load or store whose operand is not an element of an array of numbers
/// that invocations share.
fn not_an_array_element() -> ShaderError {
    invalid(
        "cooperative matrices are loaded from and stored to arrays of numbers that invocations \
         share, such as storage buffers or workgroup memory: pass `&array[index]`",
    )
}

/// Returns the error for a cooperative matrix in workgroup memory.
pub(super) fn workgroup_matrix_error() -> ShaderError {
    invalid("a cooperative matrix cannot be in workgroup memory: store it to an array of numbers")
}

fn invalid(message: &str) -> ShaderError {
    ShaderError::new(ShaderErrorKind::Validation, message.to_owned())
}
