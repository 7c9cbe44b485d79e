//! Loads and stores of matrices, element by element.
//!
//! Elements outside of the array read as zero and are not stored. A test of the last element, which
//! is the same in all lanes, decides between accesses without and with a test of each element.

use super::expand::Expand;
use super::layout::{FragmentLayout, LaneBits, held};
use crate::kir::matrix_bounds::{Inside, element_place, exact_index, inside, wide};
use crate::kir::{BinaryOp, Builtin, Const, MatrixPlace, MatrixType, Place, Stmt, Value, Var};

/// One element of a lane in memory.
struct Element {
    place: Place,
    /// Whether it is inside of the array; `None` if it is known to be.
    inside: Option<Value>,
}

/// The row or column of a lane's first element that is contiguous in memory is its position, the
/// other its line.
struct LaneOrigin {
    line: Value,
    position: Value,
}

impl Expand<'_> {
    /// Loads a matrix.
    pub(super) fn load(&mut self, place: &MatrixPlace, ty: MatrixType) -> Vec<Value> {
        let condition = match inside(&mut self.builder, place, ty) {
            Inside::Always => return self.load_elements(place, ty, false),
            Inside::Never => return self.load_elements(place, ty, true),
            Inside::If(condition) => condition,
        };
        let vars: Vec<Var> =
            (0..held(ty.size)).map(|_| self.builder.var(ty.element.ty())).collect();
        self.branch_on(condition, &mut |this, checked| {
            let values = this.load_elements(place, ty, checked);
            vars.iter().zip(values).for_each(|(var, value)| this.builder.set(*var, value));
        });
        vars.into_iter().map(|var| self.builder.get(var)).collect()
    }

    /// Stores a matrix.
    pub(super) fn store(&mut self, place: &MatrixPlace, ty: MatrixType, values: &[Value]) {
        match inside(&mut self.builder, place, ty) {
            Inside::Always => self.store_elements(place, ty, values, false),
            Inside::Never => self.store_elements(place, ty, values, true),
            Inside::If(condition) => self.branch_on(condition, &mut |this, checked| {
                this.store_elements(place, ty, values, checked);
            }),
        }
    }

    /// Adds a branch: `fill` adds the unchecked accesses for a matrix that is inside of its array,
    /// and the checked ones for another.
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

    fn load_elements(&mut self, place: &MatrixPlace, ty: MatrixType, checked: bool) -> Vec<Value> {
        let element = ty.element.ty();
        let mut values = Vec::with_capacity(held(ty.size) as usize);
        self.for_each_element(place, ty, checked, &mut |this, at| {
            let value = this.builder.load(element, at.place, 1)[0];
            values.push(match at.inside {
                None => value,
                Some(inside) => {
                    let zero = this.builder.constant(Const::zero(element));
                    this.builder.select(inside, value, zero)
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
        self.for_each_element(place, ty, checked, &mut |this, at| {
            let value = values.next().into_iter().collect();
            match at.inside {
                None => this.builder.store(at.place, value),
                Some(inside) => this.builder.if_then(inside, |b| b.store(at.place, value)),
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
        let layout = *self.layout.of(ty.role);
        let origin = self.lane_origin(&layout, place.row_major);
        let lines = self.builder.binary(BinaryOp::Mul, origin.line, place.stride);
        let first = self.builder.binary(BinaryOp::Add, place.index, lines);
        let first = self.builder.binary(BinaryOp::Add, first, origin.position);
        for nth in 0..held(ty.size) {
            let [rows, columns] = layout.distance(nth);
            let [lines, along] = if place.row_major { [rows, columns] } else { [columns, rows] };
            let index = self.offset(first, place.stride, lines, along);
            let element = match place.len.filter(|_| checked) {
                None => Element {
                    place: element_place(&mut self.builder, place, ty, index),
                    inside: None,
                },
                Some(len) => {
                    let line = self.plus(origin.line, lines);
                    let position = self.plus(origin.position, along);
                    let exact = exact_index(&mut self.builder, place, line, position);
                    let wide_len = wide(&mut self.builder, len);
                    let inside = self.builder.binary(BinaryOp::Lt, exact, wide_len);
                    let one = self.constant(1);
                    let last = self.builder.binary(BinaryOp::Sub, len, one);
                    let index = self.builder.binary(BinaryOp::Min, index, last);
                    Element {
                        place: element_place(&mut self.builder, place, ty, index),
                        inside: Some(inside),
                    }
                }
            };
            visit(self, element);
        }
    }

    /// Adds a number of strides and a number of elements to an index.
    fn offset(&mut self, index: Value, stride: Value, lines: u32, along: u32) -> Value {
        let index = self.plus(index, along);
        if lines == 0 {
            return index;
        }
        let lines = self.times(stride, lines);
        self.builder.binary(BinaryOp::Add, index, lines)
    }

    fn plus(&mut self, value: Value, by: u32) -> Value {
        let by = self.constant(by);
        self.builder.binary(BinaryOp::Add, value, by)
    }

    fn times(&mut self, value: Value, by: u32) -> Value {
        if by == 1 {
            return value;
        }
        let by = self.constant(by);
        self.builder.binary(BinaryOp::Mul, value, by)
    }

    /// Returns where the first element of a lane is.
    fn lane_origin(&mut self, layout: &FragmentLayout, row_major: bool) -> LaneOrigin {
        // A lane is below 32, which the interval analysis cannot derive.
        let lane = self.builder.builtin(Builtin::SubgroupLane);
        let most = self.constant(31);
        let lane = self.builder.binary(BinaryOp::And, lane, most);
        let (row, column) = (self.lane_bits(layout.row, lane), self.lane_bits(layout.column, lane));
        match row_major {
            true => LaneOrigin { line: row, position: column },
            false => LaneOrigin { line: column, position: row },
        }
    }

    /// Returns a row or column below 8.
    fn lane_bits(&mut self, bits: LaneBits, lane: Value) -> Value {
        let mut value = lane;
        if bits.shift > 0 {
            let shift = self.constant(bits.shift);
            value = self.builder.binary(BinaryOp::Shr, value, shift);
        }
        let most = 7 / bits.scale;
        if 31 >> bits.shift > most {
            let most = self.constant(most);
            value = self.builder.binary(BinaryOp::And, value, most);
        }
        if bits.scale == 1 {
            return value;
        }
        let shift = self.constant(bits.scale.trailing_zeros());
        self.builder.binary(BinaryOp::Shl, value, shift)
    }
}
