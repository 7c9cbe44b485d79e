//! Emits the loads and stores that `fusion` fused into arithmetic.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, Value};

use super::analysis::fusion::{MulAdd, MulAddOperand, as_mul_add};
use super::emitter::{Emitter, Location, Reg};
use super::insts::{minus_product, product_minus, sum};
use crate::code::{Access, Chain, ChainEnd, Operand, Step, Stream};
use crate::lanes::{LaneOp, Src};

impl Emitter<'_> {
    /// Computes a value with the loads that were fused into it. Returns whether there are any.
    pub(super) fn stream(&mut self, value: Value, d: Reg) -> bool {
        let Reg::Lanes(d) = d else { return false };
        let Some(sum) = as_mul_add(self.kir, &self.live_ranges.fused, value) else { return false };
        let loads = |term: &MulAddOperand| match term {
            MulAddOperand::Value(value) => self.is_fused_load(*value),
            MulAddOperand::One | MulAddOperand::NegZero => false,
        };
        let any = sum.terms.iter().any(loads);
        let any = any || self.continues_chain(&sum);
        if any {
            self.push_stream(sum, d.start, None);
        }
        any
    }

    /// Computes a value that was fused into its store. Returns whether it was.
    pub(super) fn stream_to(&mut self, value: Value, mut store: Access) -> bool {
        let Some(sum) = as_mul_add(self.kir, &self.live_ranges.fused, value) else { return false };
        if !self.live_ranges.fused[value.index()] {
            return false;
        }
        let Location::Lanes(d) = self.define(value) else { return false };
        store.from[0] = Src { start: d, step: 1 };
        self.push_stream(sum, d, Some(store));
        true
    }

    fn is_fused_load(&self, value: Value) -> bool {
        self.live_ranges.fused[value.index()] && matches!(self.kir.inst(value), Inst::Load { .. })
    }

    /// Returns the operand, if it is a multiply-add that is fused into this one.
    fn fused_mul_add(&self, term: &MulAddOperand) -> Option<Value> {
        match *term {
            MulAddOperand::Value(value) if self.is_fused_mul_add(value) => Some(value),
            _ => None,
        }
    }

    fn is_fused_mul_add(&self, value: Value) -> bool {
        let inst = self.kir.inst(value);
        let sum = matches!(inst, Inst::Fma(..) | Inst::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        sum && self.live_ranges.fused[value.index()]
    }

    fn push_stream(&mut self, sum: MulAdd, d: u32, store: Option<Access>) {
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
        sum: MulAdd,
        d: u32,
        store: Option<Access>,
        stages: &mut Vec<Stream>,
    ) -> ChainEnd {
        let stage = sum.as_stage(self.uniformity, |value| self.is_fused_mul_add(value));
        let (sum, end) = match stage {
            Some((stage, Some(link))) => {
                self.stage_before(link.from, stages);
                (stage, link.end)
            }
            Some((_, None)) | None => (sum, ChainEnd::Term),
        };
        let from = stages.last().map(|stage| Src { start: stage.d, step: 1 });
        let operands = sum.terms.map(|term| match (self.fused_mul_add(&term), from) {
            (Some(_), Some(from)) => Operand::Lanes(from),
            _ => self.term(term),
        });
        let (op, negated) = (op(sum.negated), sum.negated);
        stages.push(Stream { op, operands, negated, d, store });
        end
    }

    /// Returns whether one of the terms is a fused multiply-add.
    fn continues_chain(&self, sum: &MulAdd) -> bool {
        sum.terms.iter().any(|term| self.fused_mul_add(term).is_some())
    }

    fn stage_before(&mut self, value: Value, stages: &mut Vec<Stream>) {
        let Some(sum) = as_mul_add(self.kir, &self.live_ranges.fused, value) else { return };
        let first =
            sum.as_stage(self.uniformity, |_| false).filter(|_| !self.continues_chain(&sum));
        let sum = first.map_or(sum, |(first, _)| first);
        if let Reg::Lanes(d) = self.temporary(Type::F32, false) {
            self.stages(sum, d.start, None, stages);
        }
    }

    fn term(&mut self, term: MulAddOperand) -> Operand {
        let constant = match term {
            MulAddOperand::Value(value) if self.is_fused_load(value) => {
                return self.fused_load(value);
            }
            MulAddOperand::Value(value) => return Operand::Lanes(self.lanes(value)),
            MulAddOperand::One => 1.0f32,
            MulAddOperand::NegZero => -0.0,
        };
        let constant = Const { ty: Type::F32, bits: constant.to_bits().into() };
        match self.fixed_lanes(constant) {
            Reg::Lanes(source) => Operand::Lanes(source),
            Reg::Scalar(_) => unreachable!("these are lanes"),
        }
    }

    fn fused_load(&mut self, value: Value) -> Operand {
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
