//! Affine values: linear in the position of the invocation. They are computed from a few
//! coefficients if possible, else lane by lane.

use scry_ir::kir::{BinaryOp, Type};

use super::frame::Frame;
use super::indices::strided_rows;
use super::scratch::Coefficients;
use crate::code::{Affine, AffineOp, AffineSrc, Comparison, Condition};
use crate::lanes::{Args, BLOCK, Bits, LaneOp, Src};
use crate::ops;

impl Frame<'_> {
    /// Returns the coefficients of an operand.
    fn operand_coefficients(&self, source: AffineSrc) -> Coefficients {
        match source {
            AffineSrc::Slot(affine) => {
                // A result with these coefficients is not expanded yet.
                Coefficients { expanded: false, ..self.coefficients(affine) }
            }
            AffineSrc::Scalar { index, .. } => constant(self.scalar(index) as u32),
        }
    }

    /// Returns the lanes of an operand, after expanding it if necessary.
    fn lanes_of(&self, source: AffineSrc) -> Src {
        match source {
            AffineSrc::Slot(affine) => {
                self.expand(affine);
                Src { start: affine.lanes, step: 1 }
            }
            AffineSrc::Scalar { index, block } => {
                self.splat(Type::U32, block, self.scalar(index));
                Src { start: block, step: 0 }
            }
        }
    }

    /// Expands an affine value to lanes.
    pub(super) fn expand(&self, affine: Affine) {
        let coefficients = self.coefficients(affine);
        if !coefficients.is_affine || coefficients.expanded {
            return;
        }
        let registers = &u32::file(self.files())[affine.lanes as usize..][self.blocks()];
        match strided_rows(&self.affine_pattern(coefficients)) {
            Some(rows) => {
                let offsets = rows.lane_offsets();
                for (block, register) in self.blocks().zip(registers) {
                    let first = rows.origin(block);
                    register.set(offsets.map(|offset| first.wrapping_add(offset)));
                }
            }
            None => {
                for (block, register) in self.blocks().zip(registers) {
                    register.set(self.affine_block(&coefficients, block));
                }
            }
        }
        // Only blocks with active lanes were written.
        let expanded = self.blocks() == (0..self.block_count);
        self.set_coefficients(affine, Coefficients { expanded, ..coefficients });
    }

    /// Computes a block of lanes of an affine value.
    #[inline(always)]
    pub(super) fn affine_block(&self, coefficients: &Coefficients, block: usize) -> [u32; BLOCK] {
        let coordinates = match self.scratch.coordinates.get(block) {
            Some(coordinates) => coordinates,
            None => &self.interleaved_coordinates(block),
        };
        let mut lanes = [coefficients.base; BLOCK];
        let axes = coordinates.iter().zip(coefficients.step);
        for (position, step) in axes.filter(|(_, step)| *step != 0) {
            for (lane, position) in lanes.iter_mut().zip(position) {
                *lane = lane.wrapping_add(position.wrapping_mul(step));
            }
        }
        lanes
    }

    /// Returns the positions of a block of interleaved lanes along x, y, z, and the numbers of
    /// their workgroups in the batch.
    fn interleaved_coordinates(&self, block: usize) -> [[u32; BLOCK]; 4] {
        let [width, height, _] = self.code.lane_layout.size;
        let row_lanes = width * self.count;
        let axis = |f: &dyn Fn(u32, u32) -> u32| {
            std::array::from_fn(|lane| {
                let number = (block * BLOCK + lane) as u32;
                // All of these are powers of two.
                f(number & (row_lanes - 1), number >> row_lanes.trailing_zeros())
            })
        };
        [
            axis(&|column, _| column & (width - 1)),
            axis(&|_, row| row & (height - 1)),
            axis(&|_, row| row >> height.trailing_zeros()),
            axis(&|column, _| column >> width.trailing_zeros()),
        ]
    }

    pub(super) fn affine(
        &self,
        op: AffineOp,
        lanes: &'static dyn LaneOp,
        d: Affine,
        a: AffineSrc,
        b: AffineSrc,
    ) {
        let (x, y) = (self.operand_coefficients(a), self.operand_coefficients(b));
        let result = if x.is_affine && y.is_affine { self.combine(op, x, y) } else { None };
        if let Some(result) = result {
            return self.set_coefficients(d, result);
        }
        let args = Args { d: d.lanes, a: self.lanes_of(a), b: self.lanes_of(b), c: Src::default() };
        lanes.lanes(self.isa, self.files(), self.blocks(), &args);
        self.set_coefficients(d, Coefficients::default());
    }

    /// Returns the coefficients of a result, if it is affine.
    fn combine(&self, op: AffineOp, x: Coefficients, y: Coefficients) -> Option<Coefficients> {
        match op {
            AffineOp::Copy => Some(x),
            AffineOp::Add => Some(zip_with(x, y, u32::wrapping_add)),
            AffineOp::Sub => Some(zip_with(x, y, u32::wrapping_sub)),
            AffineOp::Neg => Some(negate(x)),
            // -1 - x
            AffineOp::Not => Some(zip_with(constant(u32::MAX), x, u32::wrapping_sub)),
            AffineOp::Mul if y.step == [0; 4] => Some(scale(x, y.base)),
            AffineOp::Mul if x.step == [0; 4] => Some(scale(y, x.base)),
            AffineOp::Shl if y.step == [0; 4] => Some(scale(x, 1u32.wrapping_shl(y.base))),
            AffineOp::Min { signed } => self.min(x, y, signed),
            // The maximum is the operand that is not the minimum.
            AffineOp::Max { signed } => {
                self.min(x, y, signed).map(|min| if min == x { y } else { x })
            }
            AffineOp::Mul | AffineOp::Shl => None,
        }
    }

    /// Returns the minimum of two values; `None` if the ranges of the operands do not decide which
    /// one it is in all lanes.
    fn min(&self, x: Coefficients, y: Coefficients, signed: bool) -> Option<Coefficients> {
        let (x_range, y_range) = (self.range(x, signed)?, self.range(y, signed)?);
        if x_range.1 <= y_range.0 {
            Some(x)
        } else if y_range.1 <= x_range.0 {
            Some(y)
        } else {
            None
        }
    }

    /// Returns bounds of the values of all lanes, if no lane wraps.
    pub(super) fn range(&self, x: Coefficients, signed: bool) -> Option<(i64, i64)> {
        let base = if signed { i64::from(x.base as i32) } else { i64::from(x.base) };
        let [width, height, depth] = self.code.lane_layout.size;
        let (mut low, mut high) = (base, base);
        for (step, size) in x.step.into_iter().zip([width, height, depth, self.count]) {
            let reach = i64::from(step as i32) * i64::from(size - 1);
            if reach < 0 { low += reach } else { high += reach }
        }
        let bounds = if signed {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (0, i64::from(u32::MAX))
        };
        (low >= bounds.0 && high <= bounds.1).then_some((low, high))
    }

    pub(super) fn affine_select(&self, condition: u32, d: Affine, a: AffineSrc, b: AffineSrc) {
        let chosen = if self.scalar(condition) != 0 { a } else { b };
        let coefficients = self.operand_coefficients(chosen);
        if !coefficients.is_affine {
            let args = Args { d: d.lanes, a: self.lanes_of(chosen), ..Args::default() };
            ops::copy(Type::U32).lanes(self.isa, self.files(), self.blocks(), &args);
        }
        self.set_coefficients(d, coefficients);
    }

    pub(super) fn compare(
        &self,
        comparison: Comparison,
        signed: bool,
        lanes: &'static dyn LaneOp,
        d: Condition,
        a: AffineSrc,
        b: AffineSrc,
    ) {
        let (x, y) = (self.operand_coefficients(a), self.operand_coefficients(b));
        let affine = x.is_affine && y.is_affine;
        let uniform = affine.then(|| self.compare_ranges(comparison, signed, x, y)).flatten();
        self.record(d, uniform);
        if uniform.is_none() {
            let args =
                Args { d: d.lanes, a: self.lanes_of(a), b: self.lanes_of(b), c: Src::default() };
            lanes.lanes(self.isa, self.files(), self.blocks(), &args);
        }
    }

    /// Records the result of a condition, if it was uniform.
    fn record(&self, condition: Condition, uniform: Option<bool>) {
        self.uniform_conditions[condition.number as usize].set(uniform);
        if let Some(holds) = uniform.filter(|_| condition.fill) {
            self.fill(condition, holds);
        }
    }

    fn fill(&self, condition: Condition, holds: bool) {
        let blocks = &u8::file(self.files())[condition.lanes as usize..][self.blocks()];
        blocks.iter().for_each(|block| block.set([holds.into(); BLOCK]));
    }

    /// Returns the result of a condition, if it was uniform.
    pub(super) fn uniform_condition(&self, number: Option<u32>) -> Option<bool> {
        self.uniform_conditions[number? as usize].get()
    }

    /// Executes a conjunction, or without `and`, a disjunction.
    pub(super) fn logical(&self, and: bool, d: Condition, a: Condition, b: Condition) {
        let value = |condition: Condition| self.uniform_conditions[condition.number as usize].get();
        let uniform = match (value(a), value(b)) {
            // `false` decides a conjunction, `true` a disjunction.
            (Some(one), _) | (_, Some(one)) if one != and => Some(one),
            (Some(_), Some(_)) => Some(and),
            _ => None,
        };
        self.record(d, uniform);
        if uniform.is_some() {
            return;
        }
        for condition in [a, b] {
            if let Some(holds) = value(condition) {
                self.fill(condition, holds);
            }
        }
        let op = if and { BinaryOp::And } else { BinaryOp::Or };
        let [a, b] = [a, b].map(|condition| Src { start: condition.lanes, step: 1 });
        if let Some(op) = ops::binary(op, Type::Bool) {
            let args = Args { d: d.lanes, a, b, c: Src::default() };
            op.lanes(self.isa, self.files(), self.blocks(), &args);
        }
    }

    /// Returns whether a comparison holds for all lanes or for none; `None` if the ranges of the
    /// operands do not decide it.
    fn compare_ranges(
        &self,
        comparison: Comparison,
        signed: bool,
        x: Coefficients,
        y: Coefficients,
    ) -> Option<bool> {
        let (x_range, y_range) = (self.range(x, signed)?, self.range(y, signed)?);
        let (before, after) = (x_range.1 < y_range.0, x_range.0 > y_range.1);
        match comparison {
            Comparison::Less if before => Some(true),
            Comparison::Less if x_range.0 >= y_range.1 => Some(false),
            Comparison::LessOrEqual if x_range.1 <= y_range.0 => Some(true),
            Comparison::LessOrEqual if after => Some(false),
            Comparison::Equal if before || after => Some(false),
            Comparison::NotEqual if before || after => Some(true),
            _ => None,
        }
    }
}

/// Combines the coefficients of two values one by one.
fn zip_with(x: Coefficients, y: Coefficients, f: impl Fn(u32, u32) -> u32) -> Coefficients {
    let step = std::array::from_fn(|axis| f(x.step[axis], y.step[axis]));
    Coefficients { base: f(x.base, y.base), step, is_affine: true, expanded: false }
}

fn scale(x: Coefficients, by: u32) -> Coefficients {
    let step = x.step.map(|step| step.wrapping_mul(by));
    Coefficients { base: x.base.wrapping_mul(by), step, is_affine: true, expanded: false }
}

fn constant(base: u32) -> Coefficients {
    Coefficients { base, step: [0; 4], is_affine: true, expanded: false }
}

fn negate(x: Coefficients) -> Coefficients {
    zip_with(constant(0), x, u32::wrapping_sub)
}
