//! Emits the loads and stores that `fusion` fused into arithmetic.

use scry_ir::kir::{BinaryOp, Const, Inst, Type, Value};

use super::analysis::fusion::{MulAdd, MulAddOperand, as_mul_add};
use super::emitter::{Emitter, Location, Reg};
use super::insts::{minus_product, product_minus, product_plus};
use crate::code::{Access, Chain, ChainEnd, MemoryMulAdd, Operand, Step};
use crate::lanes::{LaneOp, Src};

impl Emitter<'_> {
    /// Computes a value with the loads and the multiply-add that were fused into it. Returns false,
    /// and emits nothing, if there are none.
    pub(super) fn memory_mul_add(&mut self, value: Value, d: Reg) -> bool {
        let Reg::Lanes(d) = d else { return false };
        let Some(mul_add) = as_mul_add(self.kir, &self.live_ranges.fused, value) else {
            return false;
        };
        let loads = |operand: &MulAddOperand| match operand {
            MulAddOperand::Value(value) => self.is_fused_load(*value),
            MulAddOperand::One | MulAddOperand::NegZero => false,
        };
        let fuses = mul_add.operands.iter().any(loads) || self.continues_chain(&mul_add);
        if fuses {
            self.push_mul_add(mul_add, d.start, None);
        }
        fuses
    }

    /// Computes a value that was fused into its store. Returns false, and emits nothing, if it was
    /// not.
    pub(super) fn mul_add_to_memory(&mut self, value: Value, mut store: Access) -> bool {
        let Some(mul_add) = as_mul_add(self.kir, &self.live_ranges.fused, value) else {
            return false;
        };
        if !self.live_ranges.fused[value.index()] {
            return false;
        }
        let Location::Lanes(d) = self.define(value) else { return false };
        store.from[0] = Src { start: d, step: 1 };
        self.push_mul_add(mul_add, d, Some(store));
        true
    }

    fn is_fused_load(&self, value: Value) -> bool {
        self.live_ranges.fused[value.index()] && matches!(self.kir.inst(value), Inst::Load { .. })
    }

    /// Returns the operand, if it is a multiply-add that is fused into this one.
    fn fused_mul_add(&self, operand: &MulAddOperand) -> Option<Value> {
        match *operand {
            MulAddOperand::Value(value) if self.is_fused_mul_add(value) => Some(value),
            _ => None,
        }
    }

    fn is_fused_mul_add(&self, value: Value) -> bool {
        let inst = self.kir.inst(value);
        let adds = matches!(inst, Inst::Fma(..) | Inst::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        adds && self.live_ranges.fused[value.index()]
    }

    fn push_mul_add(&mut self, mul_add: MulAdd, d: u32, store: Option<Access>) {
        let mut stages = Vec::new();
        let end = self.push_stages(mul_add, d, store, &mut stages);
        match (stages.len(), stages.pop()) {
            (1, Some(stage)) => self.push(Step::MemoryMulAdd(Box::new(stage))),
            (_, Some(stage)) => {
                stages.push(stage);
                self.push(Step::Chain(Box::new(Chain { stages, end })));
            }
            (_, None) => {}
        }
    }

    /// Adds a multiply-add to the stages, after those that were fused into it. Returns how it uses
    /// the last of them.
    fn push_stages(
        &mut self,
        mul_add: MulAdd,
        d: u32,
        store: Option<Access>,
        stages: &mut Vec<MemoryMulAdd>,
    ) -> ChainEnd {
        let stage = mul_add.as_stage(self.uniformity, |value| self.is_fused_mul_add(value));
        let (mul_add, end) = match stage {
            Some((stage, Some(link))) => {
                self.push_previous_stages(link.from, stages);
                (stage, link.end)
            }
            Some((_, None)) | None => (mul_add, ChainEnd::Addend),
        };
        let from = stages.last().map(|stage| Src { start: stage.d, step: 1 });
        let operands = mul_add.operands.map(|operand| match (self.fused_mul_add(&operand), from) {
            (Some(_), Some(from)) => Operand::Lanes(from),
            _ => self.operand_of_stage(operand),
        });
        let (op, negated) = (mul_add_op(mul_add.negated), mul_add.negated);
        stages.push(MemoryMulAdd { op, operands, negated, d, store });
        end
    }

    /// Returns whether one of the operands is a fused multiply-add.
    fn continues_chain(&self, mul_add: &MulAdd) -> bool {
        mul_add.operands.iter().any(|operand| self.fused_mul_add(operand).is_some())
    }

    /// Adds the stages up to the one that computes `value`.
    fn push_previous_stages(&mut self, value: Value, stages: &mut Vec<MemoryMulAdd>) {
        let Some(mul_add) = as_mul_add(self.kir, &self.live_ranges.fused, value) else { return };
        let first = mul_add
            .as_stage(self.uniformity, |_| false)
            .filter(|_| !self.continues_chain(&mul_add));
        let mul_add = first.map_or(mul_add, |(first, _)| first);
        if let Reg::Lanes(d) = self.temporary(Type::F32, false) {
            self.push_stages(mul_add, d.start, None, stages);
        }
    }

    /// Returns an operand of a stage: a fused load, or lanes.
    fn operand_of_stage(&mut self, operand: MulAddOperand) -> Operand {
        let constant = match operand {
            MulAddOperand::Value(value) if self.is_fused_load(value) => {
                return self.fused_load(value);
            }
            MulAddOperand::Value(value) => return Operand::Lanes(self.lanes(value)),
            MulAddOperand::One => 1.0f32,
            MulAddOperand::NegZero => -0.0,
        };
        let constant = Const { ty: Type::F32, bits: constant.to_bits().into() };
        match self.constant_lanes(constant) {
            Reg::Lanes(source) => Operand::Lanes(source),
            Reg::Scalar(_) => unreachable!("constant lanes are lanes"),
        }
    }

    fn fused_load(&mut self, value: Value) -> Operand {
        let Inst::Load { place, count } = *self.kir.inst(value) else {
            unreachable!("the value is a fused load")
        };
        Operand::Memory(self.load_access(value, place, count))
    }
}

/// Returns the multiply-add on registers.
fn mul_add_op(negated: [bool; 2]) -> &'static dyn LaneOp {
    match negated {
        [false, false] => product_plus(false),
        [false, true] => product_minus(false),
        [true, _] => minus_product(false),
    }
}
