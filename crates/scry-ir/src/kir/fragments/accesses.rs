//! Expands loads and stores of matrices into accesses of single elements.
//!
//! Elements out of bounds read as zero and are not stored. If the matrix may be partly out of
//! bounds, a branch that is uniform in the subgroup tests its last element. If that is in bounds,
//! all elements are accessed unchecked; otherwise each is checked.

use super::expand::{Expand, LANES};
use super::layout::{FragmentLayout, LaneBits};
use crate::kir::matrix_bounds::{Condition, element_place, index_u64, is_in_bounds, to_u64};
use crate::kir::{
    AddressSpace, BinaryOp, Builtin, Const, FragmentPlace, MatrixElement, MatrixPlace, MatrixType,
    Place, Stmt, Value, Var,
};

/// One element of a lane in memory.
struct Element {
    place: Place,
    /// Whether it is in bounds of the array; `None` if it always is.
    in_bounds: Option<Value>,
}

/// The row and column of a lane's first element. A line is a row of a row-major matrix, else a
/// column: its elements are contiguous in memory.
struct LaneOrigin {
    line: Value,
    /// Position in the line.
    position: Value,
}

impl Expand<'_> {
    /// Loads a matrix.
    pub(super) fn load(&mut self, place: &MatrixPlace, ty: MatrixType) -> Vec<Value> {
        let condition = match is_in_bounds(&mut self.builder, place, ty) {
            Condition::Always => return self.load_in_bounds(place, ty),
            Condition::Never => return self.load_elements(place, ty, true),
            Condition::If(condition) => condition,
        };
        let vars: Vec<Var> =
            (0..ty.size.elements_per_lane()).map(|_| self.builder.var(ty.element.ty())).collect();
        self.branch_on(condition, &mut |this, checked| {
            let values = match checked {
                false => this.load_in_bounds(place, ty),
                true => this.load_elements(place, ty, true),
            };
            vars.iter().zip(values).for_each(|(var, value)| this.builder.set(*var, value));
        });
        vars.into_iter().map(|var| self.builder.get(var)).collect()
    }

    /// Stores a matrix.
    pub(super) fn store(&mut self, place: &MatrixPlace, ty: MatrixType, values: &[Value]) {
        match is_in_bounds(&mut self.builder, place, ty) {
            Condition::Always => self.store_elements(place, ty, values, false),
            Condition::Never => self.store_elements(place, ty, values, true),
            Condition::If(condition) => self.branch_on(condition, &mut |this, checked| {
                this.store_elements(place, ty, values, checked);
            }),
        }
    }

    /// Adds a branch: `fill` adds unchecked accesses (`false`) to the block for a true condition,
    /// and checked ones (`true`) to the other.
    fn branch_on(&mut self, condition: Value, fill: &mut dyn FnMut(&mut Self, bool)) {
        let at = self.builder.position();
        let mut block = |checked| {
            self.builder.open();
            fill(self, checked);
            self.builder.close()
        };
        let (then_block, else_block) = (block(false), block(true));
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
    }

    /// Loads a matrix that is in bounds: by one instruction if the backend has it.
    fn load_in_bounds(&mut self, place: &MatrixPlace, ty: MatrixType) -> Vec<Value> {
        if !self.has_load(place, ty) {
            return self.load_elements(place, ty, false);
        }
        let first = element_place(&mut self.builder, place, ty, place.index);
        let (stride, row_major) = (place.stride, place.row_major);
        self.builder.load_fragment(FragmentPlace { matrix: ty, place: first, stride, row_major })
    }

    /// Returns whether [`Inst::LoadFragment`](crate::kir::Inst::LoadFragment) can load a matrix
    /// that is in bounds.
    fn has_load(&self, place: &MatrixPlace, ty: MatrixType) -> bool {
        let Some(alignment) = &self.alignment else { return false };
        let aligned = alignment.of_matrix(self.kir, place, ty);
        matches!(place.array.space, AddressSpace::Workgroup(_))
            && ty.element == MatrixElement::F16
            && aligned.offset
            && aligned.index
            && aligned.stride
    }

    fn load_elements(&mut self, place: &MatrixPlace, ty: MatrixType, checked: bool) -> Vec<Value> {
        let element = ty.element.ty();
        let mut values = Vec::with_capacity(ty.size.elements_per_lane() as usize);
        self.for_each_element(place, ty, checked, &mut |this, access| {
            let value = this.builder.load(element, access.place, 1)[0];
            values.push(match access.in_bounds {
                None => value,
                Some(in_bounds) => {
                    let zero = this.builder.constant(Const::zero(element));
                    this.builder.select(in_bounds, value, zero)
                }
            });
        });
        values
    }

    fn store_elements(
        &mut self,
        place: &MatrixPlace,
        ty: MatrixType,
        values: &[Value],
        checked: bool,
    ) {
        let mut values = values.iter().copied();
        self.for_each_element(place, ty, checked, &mut |this, access| {
            let value = values.next().into_iter().collect();
            match access.in_bounds {
                None => this.builder.store(access.place, value),
                Some(in_bounds) => {
                    this.builder.if_then(in_bounds, |b| b.store(access.place, value));
                }
            }
        });
    }

    /// Calls `visit` with each element of a lane.
    fn for_each_element(
        &mut self,
        place: &MatrixPlace,
        ty: MatrixType,
        checked: bool,
        visit: &mut dyn FnMut(&mut Self, Element),
    ) {
        let layout = *self.layout.operand(ty.role);
        let origin = self.lane_origin(&layout, place.row_major);
        let lines = self.builder.binary(BinaryOp::Mul, origin.line, place.stride);
        let first = self.builder.binary(BinaryOp::Add, place.index, lines);
        let first = self.builder.binary(BinaryOp::Add, first, origin.position);
        for nth in 0..ty.size.elements_per_lane() {
            let [rows, columns] = layout.distance(nth);
            let [lines, positions] =
                if place.row_major { [rows, columns] } else { [columns, rows] };
            let index = self.offset(first, place.stride, lines, positions);
            let element = match place.len.filter(|_| checked) {
                None => Element {
                    place: element_place(&mut self.builder, place, ty, index),
                    in_bounds: None,
                },
                Some(len) => {
                    let line = self.add_constant(origin.line, lines);
                    let position = self.add_constant(origin.position, positions);
                    let exact = index_u64(&mut self.builder, place, line, position);
                    let len_u64 = to_u64(&mut self.builder, len);
                    let in_bounds = self.builder.binary(BinaryOp::Lt, exact, len_u64);
                    // Loads are unconditional: their index must be in bounds. An array has at
                    // least one element.
                    let one = self.constant(1);
                    let last = self.builder.binary(BinaryOp::Sub, len, one);
                    let index = self.builder.binary(BinaryOp::Min, index, last);
                    Element {
                        place: element_place(&mut self.builder, place, ty, index),
                        in_bounds: Some(in_bounds),
                    }
                }
            };
            visit(self, element);
        }
    }

    /// Adds a number of lines and a number of positions in a line to an index.
    fn offset(&mut self, index: Value, stride: Value, lines: u32, positions: u32) -> Value {
        let index = self.add_constant(index, positions);
        if lines == 0 {
            return index;
        }
        let lines = self.multiply_constant(stride, lines);
        self.builder.binary(BinaryOp::Add, index, lines)
    }

    fn add_constant(&mut self, value: Value, constant: u32) -> Value {
        let constant = self.constant(constant);
        self.builder.binary(BinaryOp::Add, value, constant)
    }

    fn multiply_constant(&mut self, value: Value, constant: u32) -> Value {
        if constant == 1 {
            return value;
        }
        let constant = self.constant(constant);
        self.builder.binary(BinaryOp::Mul, value, constant)
    }

    /// Computes the line and position of a lane's first element.
    fn lane_origin(&mut self, layout: &FragmentLayout, row_major: bool) -> LaneOrigin {
        // The mask changes nothing, but lets the interval analysis bound the lane.
        let lane = self.builder.builtin(Builtin::SubgroupLane);
        let mask = self.constant(LANES - 1);
        let lane = self.builder.binary(BinaryOp::And, lane, mask);
        let (row, column) = (self.lane_bits(layout.row, lane), self.lane_bits(layout.column, lane));
        match row_major {
            true => LaneOrigin { line: row, position: column },
            false => LaneOrigin { line: column, position: row },
        }
    }

    /// Computes a row or column below 8 from a lane.
    fn lane_bits(&mut self, bits: LaneBits, lane: Value) -> Value {
        let mut value = lane;
        if bits.shift > 0 {
            let shift = self.constant(bits.shift);
            value = self.builder.binary(BinaryOp::Shr, value, shift);
        }
        let mask = 7 / bits.scale;
        // Otherwise the shift leaves no further bits.
        if (LANES - 1) >> bits.shift > mask {
            let mask = self.constant(mask);
            value = self.builder.binary(BinaryOp::And, value, mask);
        }
        if bits.scale == 1 {
            return value;
        }
        let shift = self.constant(bits.scale.trailing_zeros());
        self.builder.binary(BinaryOp::Shl, value, shift)
    }
}
