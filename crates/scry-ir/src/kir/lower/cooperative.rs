//! Cooperative matrices: square matrices distributed over a subgroup.
//!
//! A matrix of 8 rows has 2 scalars per lane, one of 16 rows has 8, in the layout of
//! [`Inst::MultiplyAdd`](crate::kir::Inst::MultiplyAdd). Element-wise operations apply to each
//! scalar; loads and stores access elements whose indices depend on the lane.
//!
//! Elements outside of the array read as zero and are not stored. A test of the last element, which
//! is the same in all lanes, decides between accesses without and with a test of each element.

use naga::{CooperativeData, CooperativeRole, Expression};

use super::Lower;
use super::frame::{Expr, Operand};
use super::pointers::{ElementIndex, Pointer, Root};
use super::types::Ty;
use crate::kir::{AddressSpace, BinaryOp, Builtin, Const, Place, Stmt, Type, Value, Var};
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

/// A load or store of a matrix.
struct Access {
    origin: MatrixOrigin,
    role: CooperativeRole,
    /// Scalars per lane.
    count: u32,
    /// Rows, and columns.
    size: u32,
    /// Number of the lane's first row or column, and the position in it.
    major: Value,
    minor: Value,
}

/// Whether all elements of a matrix are inside of its array.
enum Inside {
    Always,
    Never,
    /// If this `Bool` is true, which is the same in all lanes.
    If(Value),
}

/// One scalar of a lane in memory.
struct Element {
    place: Place,
    /// Whether it is inside of the array; `None` if it is known to be.
    inside: Option<Value>,
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
    /// Lowers a load of a matrix. Elements outside of the array are zero.
    pub(super) fn cooperative_load(
        &mut self,
        ty: Ty,
        data: CooperativeData,
    ) -> Result<Vec<Value>, ShaderError> {
        let access = self.matrix_access(ty, data)?;
        let condition = match self.inside(&access)? {
            Inside::Always => return self.load_elements(&access, false),
            Inside::Never => return self.load_elements(&access, true),
            Inside::If(condition) => condition,
        };
        let ty = access.origin.ty;
        let vars: Vec<Var> = (0..access.count).map(|_| self.builder.var(ty)).collect();
        self.branch_on(condition, &mut |this, checked| {
            let values = this.load_elements(&access, checked)?;
            vars.iter().zip(values).for_each(|(var, value)| this.builder.set(*var, value));
            Ok(())
        })?;
        Ok(vars.into_iter().map(|var| self.builder.get(var)).collect())
    }

    /// Lowers a store of a matrix. Elements outside of the array are not stored.
    pub(super) fn cooperative_store(
        &mut self,
        target: Expr,
        data: CooperativeData,
    ) -> Result<(), ShaderError> {
        let values = self.values(target)?;
        let access = self.matrix_access(self.ty(target)?, data)?;
        match self.inside(&access)? {
            Inside::Always => self.store_elements(&access, &values, false),
            Inside::Never => self.store_elements(&access, &values, true),
            Inside::If(condition) => self.branch_on(condition, &mut |this, checked| {
                this.store_elements(&access, &values, checked)
            }),
        }
    }

    /// Adds a branch: `fill` adds the unchecked accesses for a matrix that is inside of its array,
    /// and the checked ones for another.
    fn branch_on(
        &mut self,
        condition: Value,
        fill: &mut dyn FnMut(&mut Self, bool) -> Result<(), ShaderError>,
    ) -> Result<(), ShaderError> {
        let at = self.builder.position();
        self.enter()?;
        fill(self, false)?;
        let then_block = self.exit();
        self.enter()?;
        fill(self, true)?;
        let else_block = self.exit();
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
        Ok(())
    }

    fn load_elements(&mut self, access: &Access, checked: bool) -> Result<Vec<Value>, ShaderError> {
        let ty = access.origin.ty;
        let mut values = Vec::with_capacity(access.count as usize);
        self.for_each_element(access, checked, &mut |this, element| {
            let value = this.builder.load(ty, element.place, 1)[0];
            values.push(match element.inside {
                None => value,
                Some(inside) => {
                    let zero = this.constant(Const::zero(ty));
                    this.builder.select(inside, value, zero)
                }
            });
        })?;
        Ok(values)
    }

    fn store_elements(
        &mut self,
        access: &Access,
        values: &[Value],
        checked: bool,
    ) -> Result<(), ShaderError> {
        let mut values = values.iter().copied();
        self.for_each_element(access, checked, &mut |this, element| {
            let value = values.next().into_iter().collect();
            match element.inside {
                None => this.builder.store(element.place, value),
                Some(inside) => this.builder.if_then(inside, |b| b.store(element.place, value)),
            }
        })
    }

    /// Calls `visit` with each element of a lane.
    fn for_each_element(
        &mut self,
        access: &Access,
        checked: bool,
        visit: &mut dyn FnMut(&mut Self, Element),
    ) -> Result<(), ShaderError> {
        let &Access { ref origin, role, count, major, minor, .. } = access;
        self.spend(count as usize)?;
        let lines = self.builder.binary(BinaryOp::Mul, major, origin.stride);
        let first = self.builder.binary(BinaryOp::Add, origin.index, lines);
        let first = self.builder.binary(BinaryOp::Add, first, minor);
        for nth in 0..count {
            let [rows, columns] = offset(role, nth);
            let (lines, along) = if origin.row_major { (rows, columns) } else { (columns, rows) };
            let index = self.further(first, origin.stride, lines, along);
            let (at, inside) = if checked {
                let lines = self.further_line(major, lines);
                let position = self.exact_index(origin, lines, minor, along);
                let len = self.wide_length(&origin.array)?;
                let inside = self.builder.binary(BinaryOp::Lt, position, len);
                (self.bounded(&origin.array, index)?, Some(inside))
            } else {
                (ElementIndex::Value(index), None)
            };
            let element = self.element_of(origin.array, at)?;
            let place = self.place(&element, origin.ty)?;
            visit(self, Element { place, inside });
        }
        Ok(())
    }

    /// Returns whether all elements of a matrix are inside of its array.
    fn inside(&mut self, access: &Access) -> Result<Inside, ShaderError> {
        if !self.checked {
            return Ok(Inside::Always);
        }
        let (origin, edge) = (&access.origin, access.size - 1);
        let len = self.types.element(origin.array.ty)?.len;
        let constant = |value| self.builder.kir().constant(value).map(|known| known.bits);
        let (stride, index) = (constant(origin.stride), constant(origin.index));
        let (Some(len), Some(stride)) = (len, stride) else {
            let edge = self.constant(Const::u32(edge));
            let last = self.exact_index(origin, edge, edge, 0);
            let len = self.wide_length(&origin.array)?;
            return Ok(Inside::If(self.builder.binary(BinaryOp::Lt, last, len)));
        };
        // The greatest index at which a matrix is inside.
        let most = u64::from(len).checked_sub(1 + u64::from(edge) * (stride + 1));
        Ok(match (most, index) {
            (None, _) => Inside::Never,
            (Some(most), Some(index)) if index <= most => Inside::Always,
            (Some(_), Some(_)) => Inside::Never,
            (Some(most), None) => {
                let most = self.constant(Const::u32(most as u32));
                Inside::If(self.builder.binary(BinaryOp::Le, origin.index, most))
            }
        })
    }

    /// Returns `index + line * stride + position + along` as a `U64`, which cannot overflow.
    fn exact_index(
        &mut self,
        origin: &MatrixOrigin,
        line: Value,
        position: Value,
        along: u32,
    ) -> Value {
        let along = self.constant(Const::u32(along));
        let position = self.builder.binary(BinaryOp::Add, position, along);
        let [index, line, stride, position] = [origin.index, line, origin.stride, position]
            .map(|value| self.builder.convert(Type::U64, value));
        let lines = self.builder.binary(BinaryOp::Mul, line, stride);
        let start = self.builder.binary(BinaryOp::Add, index, lines);
        self.builder.binary(BinaryOp::Add, start, position)
    }

    fn further_line(&mut self, line: Value, by: u32) -> Value {
        let by = self.constant(Const::u32(by));
        self.builder.binary(BinaryOp::Add, line, by)
    }

    /// Returns the length of an array as a `U64`.
    fn wide_length(&mut self, array: &Pointer) -> Result<Value, ShaderError> {
        let len = match self.types.element(array.ty)?.len {
            Some(len) => self.constant(Const::u32(len)),
            None => self.length(array)?,
        };
        Ok(self.builder.convert(Type::U64, len))
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

    fn matrix_access(&mut self, ty: Ty, data: CooperativeData) -> Result<Access, ShaderError> {
        let Ty::Cooperative { role, large, .. } = ty else {
            return Err(ShaderError::compiler("a cooperative access to no matrix".into()));
        };
        let origin = self.origin(data)?;
        let LaneOrigin { row, column } = self.lane_origin(role);
        let (major, minor) = if origin.row_major { (row, column) } else { (column, row) };
        let (count, size) = (self.types.scalars(ty) as u32, if large { 2 * STEP } else { STEP });
        Ok(Access { origin, role, count, size, major, minor })
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
