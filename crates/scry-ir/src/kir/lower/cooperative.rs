//! Cooperative matrices: square matrices distributed over a subgroup.
//!
//! A matrix of 8 rows is 2 scalars per lane, one of 16 rows is 8, in the layout of
//! [`Inst::MultiplyAdd`](crate::kir::Inst::MultiplyAdd). Element-wise operations apply to each
//! scalar; loads and stores access elements whose indices depend on the lane.

use naga::{CooperativeData, CooperativeRole, Expression};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::{Pointer, Root};
use super::types::Ty;
use crate::kir::{AddressSpace, BinaryOp, Builtin, Const, Type, Value};
use crate::{ShaderError, ShaderErrorKind};

/// Rows that one instruction multiplies by, and half the larger matrices.
const STEP: u32 = 8;

/// An array, and the element where a matrix begins in it.
struct Begin {
    array: Pointer,
    ty: Type,
    index: Value,
    /// Elements from one row or column to the next.
    stride: Value,
    row_major: bool,
}

/// Row and column of a lane's first scalar.
#[derive(Clone, Copy)]
struct Corner {
    row: Value,
    column: Value,
}

/// Rows and columns of a lane's scalar from its first one.
fn offset(role: CooperativeRole, nth: u32) -> [u32; 2] {
    let (next, second, last) = (nth & 1, (nth >> 1 & 1) * STEP, (nth >> 2) * STEP);
    match role {
        CooperativeRole::A | CooperativeRole::C => [second, next + last],
        CooperativeRole::B => [next + second, last],
    }
}

impl Lower<'_> {
    /// The scalars of a matrix that is read from memory.
    pub(super) fn cooperative_load(
        &mut self,
        ty: Ty,
        data: CooperativeData,
    ) -> Result<Vec<Value>, ShaderError> {
        let begin = self.begin(data)?;
        let mut values = Vec::new();
        self.for_each_element(ty, &begin, &mut |this, element| {
            let place = this.place(&element, begin.ty)?;
            values.extend(this.builder.load(begin.ty, place, 1));
            Ok(())
        })?;
        Ok(values)
    }

    /// Writes a matrix to memory.
    pub(super) fn cooperative_store(
        &mut self,
        target: Expr,
        data: CooperativeData,
    ) -> Result<(), ShaderError> {
        let values = self.values(target)?;
        let begin = self.begin(data)?;
        let mut values = values.iter();
        self.for_each_element(self.ty(target)?, &begin, &mut |this, element| {
            let place = this.place(&element, begin.ty)?;
            this.builder.store(place, values.next().copied().into_iter().collect());
            Ok(())
        })
    }

    /// Calls `visit` with a pointer to each element that a lane holds.
    fn for_each_element(
        &mut self,
        ty: Ty,
        begin: &Begin,
        visit: &mut dyn FnMut(&mut Self, Pointer) -> Result<(), ShaderError>,
    ) -> Result<(), ShaderError> {
        let Ty::Cooperative { role, .. } = ty else {
            return Err(ShaderError::compiler("a cooperative access to no matrix".into()));
        };
        let count = self.types.scalars(ty) as u32;
        self.spend(count as usize)?;
        let Corner { row, column } = self.corner(role);
        let (major, minor) = if begin.row_major { (row, column) } else { (column, row) };
        let lines = self.builder.binary(BinaryOp::Mul, major, begin.stride);
        let first = self.builder.binary(BinaryOp::Add, begin.index, lines);
        let first = self.builder.binary(BinaryOp::Add, first, minor);
        for nth in 0..count {
            let [rows, columns] = offset(role, nth);
            let (lines, along) = if begin.row_major { (rows, columns) } else { (columns, rows) };
            let index = self.further(first, begin.stride, lines, along);
            let at = self.bounded(&begin.array, index)?;
            let element = self.element_of(begin.array, at)?;
            visit(self, element)?;
        }
        Ok(())
    }

    /// An index some lines and some elements further on.
    fn further(&mut self, index: Value, stride: Value, lines: u32, along: u32) -> Value {
        let along = self.constant(Const::u32(along));
        let index = self.builder.binary(BinaryOp::Add, index, along);
        if lines == 0 {
            return index;
        }
        let lines = self.times(stride, lines);
        self.builder.binary(BinaryOp::Add, index, lines)
    }

    /// Which element a lane holds first.
    fn corner(&mut self, role: CooperativeRole) -> Corner {
        // There are 32 lanes, which the interval analysis does not derive.
        let (lane, most) =
            (self.builder.builtin(Builtin::SubgroupLane), self.constant(Const::u32(31)));
        let lane = self.builder.binary(BinaryOp::And, lane, most);
        let [one, two, three] = [1, 2, 3].map(|n| self.constant(Const::u32(n)));
        let group = self.builder.binary(BinaryOp::Shr, lane, two);
        let within = self.builder.binary(BinaryOp::And, lane, three);
        let pair = self.builder.binary(BinaryOp::Shl, within, one);
        match role {
            CooperativeRole::A | CooperativeRole::C => Corner { row: group, column: pair },
            CooperativeRole::B => Corner { row: pair, column: group },
        }
    }

    /// Where a matrix begins in memory.
    fn begin(&mut self, data: CooperativeData) -> Result<Begin, ShaderError> {
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
        Ok(Begin { array, ty, index, stride, row_major: data.row_major })
    }

    /// The scalars of `a * b + c`.
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

/// Whether matrices of these types, which can be multiplied and added, are the larger ones.
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

/// Why a variable cannot be shared.
pub(super) fn not_shared() -> ShaderError {
    refused("a cooperative matrix cannot be in workgroup memory: store it to an array of numbers")
}

fn refused(message: &str) -> ShaderError {
    ShaderError::without_place(ShaderErrorKind::Validation, message.to_owned())
}
