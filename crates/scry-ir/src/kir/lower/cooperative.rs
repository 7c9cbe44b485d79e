//! Cooperative matrices: square matrices distributed over a subgroup.
//!
//! A matrix of 8 rows has 2 scalars per lane, one of 16 rows has 8, in the layout of
//! [`Inst::MultiplyAdd`](crate::kir::Inst::MultiplyAdd). Element-wise operations apply to each
//! scalar; loads and stores access elements whose indices depend on the lane.

use naga::{CooperativeData, CooperativeRole, Expression};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::{Pointer, Root};
use super::types::Ty;
use crate::kir::{AddressSpace, BinaryOp, Builtin, Const, Type, Value};
use crate::{ShaderError, ShaderErrorKind};

/// N and K of one instruction, which are half of those of the larger matrices.
const STEP: u32 = 8;

/// A matrix in memory: an array, and the first element in it.
struct MatrixOrigin {
    array: Pointer,
    ty: Type,
    index: Value,
    /// Elements from one row or column to the next.
    stride: Value,
    row_major: bool,
}

/// Row and column of the first scalar of a lane.
#[derive(Clone, Copy)]
struct LaneOrigin {
    row: Value,
    column: Value,
}

/// Offset of the `nth` scalar of a lane from the first one, in rows and columns.
fn offset(role: CooperativeRole, nth: u32) -> [u32; 2] {
    let (next, second, last) = (nth & 1, (nth >> 1 & 1) * STEP, (nth >> 2) * STEP);
    match role {
        CooperativeRole::A | CooperativeRole::C => [second, next + last],
        CooperativeRole::B => [next + second, last],
    }
}

impl Lower<'_> {
    /// Lowers a load of a matrix.
    pub(super) fn cooperative_load(
        &mut self,
        ty: Ty,
        data: CooperativeData,
    ) -> Result<Vec<Value>, ShaderError> {
        let origin = self.origin(data)?;
        let mut values = Vec::new();
        self.for_each_element(ty, &origin, &mut |this, element| {
            let place = this.place(&element, origin.ty)?;
            values.extend(this.builder.load(origin.ty, place, 1));
            Ok(())
        })?;
        Ok(values)
    }

    /// Lowers a store of a matrix.
    pub(super) fn cooperative_store(
        &mut self,
        target: Expr,
        data: CooperativeData,
    ) -> Result<(), ShaderError> {
        let values = self.values(target)?;
        let origin = self.origin(data)?;
        let mut values = values.iter();
        self.for_each_element(self.ty(target)?, &origin, &mut |this, element| {
            let place = this.place(&element, origin.ty)?;
            this.builder.store(place, values.next().copied().into_iter().collect());
            Ok(())
        })
    }

    /// Calls `visit` with a pointer to each element of a lane.
    fn for_each_element(
        &mut self,
        ty: Ty,
        origin: &MatrixOrigin,
        visit: &mut dyn FnMut(&mut Self, Pointer) -> Result<(), ShaderError>,
    ) -> Result<(), ShaderError> {
        let Ty::Cooperative { role, .. } = ty else {
            return Err(ShaderError::compiler("a cooperative access to no matrix".into()));
        };
        let count = self.types.scalars(ty) as u32;
        self.spend(count as usize)?;
        let LaneOrigin { row, column } = self.lane_origin(role);
        let (major, minor) = if origin.row_major { (row, column) } else { (column, row) };
        let lines = self.builder.binary(BinaryOp::Mul, major, origin.stride);
        let first = self.builder.binary(BinaryOp::Add, origin.index, lines);
        let first = self.builder.binary(BinaryOp::Add, first, minor);
        for nth in 0..count {
            let [rows, columns] = offset(role, nth);
            let (lines, along) = if origin.row_major { (rows, columns) } else { (columns, rows) };
            let index = self.further(first, origin.stride, lines, along);
            let at = self.bounded(&origin.array, index)?;
            let element = self.element_of(origin.array, at)?;
            visit(self, element)?;
        }
        Ok(())
    }

    /// Adds a number of strides and a number of elements to an index.
    fn further(&mut self, index: Value, stride: Value, lines: u32, along: u32) -> Value {
        let along = self.constant(Const::u32(along));
        let index = self.builder.binary(BinaryOp::Add, index, along);
        if lines == 0 {
            return index;
        }
        let lines = self.times(stride, lines);
        self.builder.binary(BinaryOp::Add, index, lines)
    }

    /// Returns the row and column of a lane's first scalar.
    fn lane_origin(&mut self, role: CooperativeRole) -> LaneOrigin {
        // A lane is below 32, which the interval analysis cannot derive.
        let (lane, most) =
            (self.builder.builtin(Builtin::SubgroupLane), self.constant(Const::u32(31)));
        let lane = self.builder.binary(BinaryOp::And, lane, most);
        let [one, two, three] = [1, 2, 3].map(|n| self.constant(Const::u32(n)));
        let group = self.builder.binary(BinaryOp::Shr, lane, two);
        let within = self.builder.binary(BinaryOp::And, lane, three);
        let pair = self.builder.binary(BinaryOp::Shl, within, one);
        match role {
            CooperativeRole::A | CooperativeRole::C => LaneOrigin { row: group, column: pair },
            CooperativeRole::B => LaneOrigin { row: pair, column: group },
        }
    }

    /// Returns the location of a matrix in memory.
    fn origin(&mut self, data: CooperativeData) -> Result<MatrixOrigin, ShaderError> {
        let (array, index) = match *self.frame.expression(data.pointer) {
            Expression::Access { base, index } => (base, self.index(index)?),
            Expression::AccessIndex { base, index } => (base, self.constant(Const::u32(index))),
            _ => return Err(no_array()),
        };
        let Operand::Pointer(array) = self.operand(array)? else { return Err(no_array()) };
        let Ty::Array { .. } = array.ty else { return Err(no_array()) };
        let Ty::Scalar(ty) = self.types.element(array.ty)?.ty else { return Err(no_array()) };
        let shared = match array.root {
            Root::Bytes(space) => !matches!(space, AddressSpace::Local(_)),
            Root::Leaves { shared, .. } => shared,
            Root::Vars(_) => false,
        };
        if !shared {
            return Err(no_array());
        }
        let stride = self.index(data.stride)?;
        Ok(MatrixOrigin { array, ty, index, stride, row_major: data.row_major })
    }

    /// Lowers `a * b + c`.
    pub(super) fn cooperative_multiply_add(
        &mut self,
        operands: [Expr; 3],
    ) -> Result<Vec<Value>, ShaderError> {
        let [a, b, c] = operands;
        let types = [self.ty(a)?, self.ty(b)?, self.ty(c)?];
        let large = multiplies(types)?;
        let (a, b, c) = (self.values(a)?, self.values(b)?, self.values(c)?);
        if !large {
            let zeros = [self.builder.ty(a[0]), self.builder.ty(c[0])]
                .map(|ty| self.constant(Const::zero(ty)));
            let (left, sum) = ([a[0], a[1], zeros[0], zeros[0]], [c[0], c[1], zeros[1], zeros[1]]);
            let mut result = self.builder.multiply_add(left, [b[0], b[1]], sum);
            result.truncate(2);
            return Ok(result);
        }
        let mut result = Vec::with_capacity(8);
        for right in [0, 4] {
            let mut sum = four(&c[right..]);
            for step in [0, 2] {
                let factor = [b[right + step], b[right + step + 1]];
                sum = four(&self.builder.multiply_add(four(&a[2 * step..]), factor, sum));
            }
            result.extend(sum);
        }
        Ok(result)
    }
}

fn four(values: &[Value]) -> [Value; 4] {
    [values[0], values[1], values[2], values[3]]
}

/// Checks the types of a multiply-add; returns whether the matrices are the larger ones.
fn multiplies(types: [Ty; 3]) -> Result<bool, ShaderError> {
    let known = types.map(|ty| match ty {
        Ty::Cooperative { large, ty, .. } => Some((large, ty)),
        _ => None,
    });
    let [Some((a, left)), Some((b, right)), Some((c, sum))] = known else {
        return Err(ShaderError::compiler("a cooperative product of no matrices".into()));
    };
    if a != b || a != c {
        return Err(refused("`coopMultiplyAdd` takes three matrices of one size"));
    }
    match (left, right, sum) {
        (Type::F16, Type::F16, Type::F16 | Type::F32) | (Type::F32, Type::F32, Type::F32) => Ok(a),
        _ => Err(refused(&format!(
            "there is no `coopMultiplyAdd` of {left} and {right} to {sum}: the factors are both \
             f16, or all is f32"
        ))),
    }
}

fn no_array() -> ShaderError {
    refused(
        "cooperative matrices are read from and written to arrays of numbers in storage, uniform \
         or workgroup memory: give `&array[index]`",
    )
}

/// The error for a cooperative matrix in workgroup memory.
pub(super) fn not_shared() -> ShaderError {
    refused("a cooperative matrix cannot be in workgroup memory: store it to an array of numbers")
}

fn refused(message: &str) -> ShaderError {
    ShaderError::without_place(ShaderErrorKind::Validation, message.to_owned())
}
