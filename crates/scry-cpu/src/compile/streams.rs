//! Emits the loads and stores that `fusion` fused into arithmetic.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, Value};

use super::analysis::fusion::{Sum, Term, as_sum};
use super::emitter::{Emitter, Home, Reg};
use super::insts::{minus_product, product_minus, sum};
use crate::code::{Access, Chain, ChainEnd, Operand, Step, Stream};
use crate::lanes::{LaneOp, Src};

impl Emitter<'_> {
    /// Computes a value with the loads that were fused into it. Returns whether there are any.
    pub(super) fn stream(&mut self, value: Value, d: Reg) -> bool {
        let Reg::Lanes(d) = d else { return false };
        let Some(sum) = as_sum(self.kir, &self.live_ranges.fused, value) else { return false };
        let loads = |term: &Term| match term {
            Term::Value(value) => self.is_left_load(*value),
            Term::One | Term::Nothing => false,
        };
        let any = sum.terms.iter().any(loads);
        let any = any || self.goes_on(&sum);
        if any {
            self.push_stream(sum, d.start, None);
        }
        any
    }

    /// Computes a value that was fused into its store. Returns whether it was.
    pub(super) fn stream_to(&mut self, value: Value, mut store: Access) -> bool {
        let Some(sum) = as_sum(self.kir, &self.live_ranges.fused, value) else { return false };
        if !self.live_ranges.fused[value.index()] {
            return false;
        }
        let Home::Lanes(d) = self.define(value) else { return false };
        store.from[0] = Src { start: d, step: 1 };
        self.push_stream(sum, d, Some(store));
        true
    }

    fn is_left_load(&self, value: Value) -> bool {
        self.live_ranges.fused[value.index()] && matches!(self.kir.inst(value), Inst::Load { .. })
    }

    /// Returns the multiply-add that was fused into the next one of a chain.
    fn left_sum(&self, term: &Term) -> Option<Value> {
        match *term {
            Term::Value(value) if self.is_left_sum(value) => Some(value),
            _ => None,
        }
    }

    fn is_left_sum(&self, value: Value) -> bool {
        let inst = self.kir.inst(value);
        let sum = matches!(inst, Inst::Fma(..) | Inst::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        sum && self.live_ranges.fused[value.index()]
    }

    fn push_stream(&mut self, sum: Sum, d: u32, store: Option<Access>) {
        let mut stages = Vec::new();
        let end = self.stages(sum, d, store, &mut stages);
        match (stages.len(), stages.pop()) {
            (1, Some(stage)) => self.push(Step::Stream(Box::new(stage))),
            (_, Some(stage)) => {
                stages.push(stage);
                self.push(Step::Chain(Box::new(Chain { stages, end })));
            }
            (_, None) => {}
        }
    }

    /// Adds a multiply-add to the stages, after those that were fused into it.
    fn stages(
        &mut self,
        sum: Sum,
        d: u32,
        store: Option<Access>,
        stages: &mut Vec<Stream>,
    ) -> ChainEnd {
        let staged = sum.staged(self.uniformity, |value| self.is_left_sum(value));
        let (sum, end) = match staged {
            Some((staged, Some(link))) => {
                self.stage_before(link.from, stages);
                (staged, link.end)
            }
            Some((_, None)) | None => (sum, ChainEnd::Term),
        };
        let from = stages.last().map(|stage| Src { start: stage.d, step: 1 });
        let operands = sum.terms.map(|term| match (self.left_sum(&term), from) {
            (Some(_), Some(from)) => Operand::Lanes(from),
            _ => self.term(term),
        });
        let (op, negated) = (op(sum.negated), sum.negated);
        stages.push(Stream { op, operands, negated, d, store });
        end
    }

    /// Returns whether one of the terms is a fused multiply-add.
    fn goes_on(&self, sum: &Sum) -> bool {
        sum.terms.iter().any(|term| self.left_sum(term).is_some())
    }

    fn stage_before(&mut self, value: Value, stages: &mut Vec<Stream>) {
        let Some(sum) = as_sum(self.kir, &self.live_ranges.fused, value) else { return };
        let first = sum.staged(self.uniformity, |_| false).filter(|_| !self.goes_on(&sum));
        let sum = first.map_or(sum, |(first, _)| first);
        if let Reg::Lanes(d) = self.temporary(Type::F32, false) {
            self.stages(sum, d.start, None, stages);
        }
    }

    fn term(&mut self, term: Term) -> Operand {
        let constant = match term {
            Term::Value(value) if self.is_left_load(value) => return self.left_load(value),
            Term::Value(value) => return Operand::Lanes(self.lanes(value)),
            Term::One => 1.0f32,
            Term::Nothing => -0.0,
        };
        let constant = Const { ty: Type::F32, bits: constant.to_bits().into() };
        match self.fixed_lanes(constant) {
            Reg::Lanes(source) => Operand::Lanes(source),
            Reg::Scalar(_) => unreachable!("these are lanes"),
        }
    }

    fn left_load(&mut self, value: Value) -> Operand {
        let Inst::Load { place, count } = *self.kir.inst(value) else {
            unreachable!("only loads are asked for")
        };
        Operand::Memory(self.load_access(value, place, count))
    }
}

/// The operation on registers.
fn op(negated: [bool; 2]) -> &'static dyn LaneOp {
    match negated {
        [false, false] => sum(false),
        [false, true] => product_minus(false),
        [true, _] => minus_product(false),
    }
}
