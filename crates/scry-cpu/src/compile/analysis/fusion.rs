//! Fusion of loads and stores with the arithmetic between them.
//!
//! A load whose only use is a multiply-add in the same block, with no write between them, is
//! executed by that operation; so is the store of the result, if that is its only use. This avoids
//! copies through lane registers.
//!
//! A multiply-add whose result is used only by the next one forms a *chain* with it
//! (`code::Chain`): up to `MAX_STAGES` multiply-adds, the *stages*, that are computed in one pass.
//! All stages but the last use the previous result as addend.

use std::collections::HashMap;

use scry_ir::kir::{
    AddressSpace, BinaryOp, Block, Inst, Kir, Place, Stmt, Type, Uniformity, Value, Variability,
};

use super::liveness::LiveRanges;
use crate::code::ChainEnd;
use crate::exec::MAX_STAGES;

/// An operand of a multiply-add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MulAddOperand {
    Value(Value),
    /// The multiplicative identity.
    One,
    /// -0.0, the additive identity: adding it preserves the sign of a zero.
    NegZero,
}

/// `a * b + c`; `negated` says whether the product and the addend are negated.
#[derive(Clone, Copy)]
pub(crate) struct MulAdd {
    pub(crate) operands: [MulAddOperand; 3],
    pub(crate) negated: [bool; 2],
}

/// Matches a value that is computed as a multiply-add.
pub(crate) fn as_mul_add(kir: &Kir, fused: &[bool], value: Value) -> Option<MulAdd> {
    use MulAddOperand::{NegZero, One, Value};
    if kir.ty(value) != Type::F32 {
        return None;
    }
    let product = |value: scry_ir::kir::Value| match *kir.inst(value) {
        Inst::Binary(BinaryOp::Mul, x, y) if fused[value.index()] => Some((x, y)),
        _ => None,
    };
    let (operands, negated) = match *kir.inst(value) {
        Inst::Fma(a, b, c) => ([Value(a), Value(b), Value(c)], [false; 2]),
        Inst::Binary(BinaryOp::Mul, a, b) => ([Value(a), Value(b), NegZero], [false; 2]),
        Inst::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            let minus = op == BinaryOp::Sub;
            match (product(a), product(b)) {
                (Some((x, y)), _) => ([Value(x), Value(y), Value(b)], [false, minus]),
                (None, Some((x, y))) => ([Value(x), Value(y), Value(a)], [minus, false]),
                (None, None) => ([Value(a), One, Value(b)], [false, minus]),
            }
        }
        _ => return None,
    };
    Some(MulAdd { operands, negated })
}

/// How a stage uses the previous value of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChainLink {
    /// The value that is fused into the stage, or may be.
    pub(crate) from: Value,
    /// Which operand of the stage that value is. Anything but `Addend` ends the chain.
    pub(crate) end: ChainEnd,
}

impl MulAdd {
    /// Rearranges the operands so that `b` is uniform, `a` is not, and `c` is not negated; `None`
    /// if that is impossible. `a * 1 - c` becomes `-(c * 1) + a`.
    fn with_uniform_factor(mut self, uniformity: &Uniformity) -> Option<Self> {
        let uniform = |operand| match operand {
            MulAddOperand::Value(value) => uniformity.values[value.index()] == Variability::Uniform,
            MulAddOperand::One | MulAddOperand::NegZero => true,
        };
        if !uniform(self.operands[1]) {
            self.operands.swap(0, 1);
        }
        if self.negated[1] && self.operands[1] == MulAddOperand::One {
            self.operands.swap(0, 2);
            self.negated = [true, false];
        }
        let [x, y, _] = self.operands;
        (uniform(y) && !uniform(x) && !self.negated[1]).then_some(self)
    }

    /// Returns the multiply-add as a stage of a chain; `None` if it cannot be one. The stage
    /// continues the chain of an operand for which `is_open` returns true, or else starts a chain.
    pub(crate) fn as_stage(
        self,
        uniformity: &Uniformity,
        is_open: impl Fn(Value) -> bool,
    ) -> Option<(Self, Option<ChainLink>)> {
        let mut mul_add = self.with_uniform_factor(uniformity)?;
        let from = |operand: MulAddOperand| match operand {
            MulAddOperand::Value(value) if is_open(value) => Some(value),
            _ => None,
        };
        let varying = |operand| match operand {
            MulAddOperand::Value(value) => uniformity.values[value.index()] == Variability::Varying,
            MulAddOperand::One | MulAddOperand::NegZero => false,
        };
        // In a * 1 + c both are addends. The one that may continue a chain, or else the one that
        // was not uniform, becomes c: a chain that continues through an addend may grow further.
        if mul_add.operands[1] == MulAddOperand::One
            && from(mul_add.operands[2]).is_none()
            && !mul_add.negated[0]
        {
            mul_add.operands.swap(0, 2);
        }
        let [x, _, c] = mul_add.operands;
        if let Some(from) = from(c) {
            return Some((mul_add, Some(ChainLink { from, end: ChainEnd::Addend })));
        }
        if let Some(from) = from(x) {
            let end = if c == MulAddOperand::NegZero { ChainEnd::Scaled } else { ChainEnd::Factor };
            let supported = c == MulAddOperand::NegZero || varying(c);
            return supported.then_some((mul_add, Some(ChainLink { from, end })));
        }
        varying(c).then_some((mul_add, None))
    }
}

/// Marks the loads and results to fuse.
pub(crate) fn mark(kir: &Kir, uniformity: &Uniformity, live_ranges: &mut LiveRanges) {
    Search { kir, uniformity, live_ranges, stages: HashMap::new() }.block(&kir.body);
}

struct Search<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    live_ranges: &'a mut LiveRanges,
    /// For each value that ends a chain, the number of stages; [`MAX_STAGES`] if none can follow.
    stages: HashMap<Value, usize>,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        // Loads and results that no write follows so far.
        let mut open = Vec::new();
        for stmt in block {
            stmt.blocks().for_each(|inner| self.block(inner));
            match stmt {
                Stmt::Let(value) if matches!(self.kir.inst(*value), Inst::Atomic { .. }) => {
                    open.clear();
                }
                Stmt::Let(value) => self.value(*value, &mut open),
                Stmt::Set(..) => {}
                Stmt::Store { place, values, .. } => {
                    if let [value] = values.as_slice()
                        && self.is_fusible(place)
                        && open.contains(value)
                        && !matches!(self.kir.inst(*value), Inst::Load { .. })
                    {
                        self.live_ranges.fused[value.index()] = true;
                    }
                    open.clear();
                }
                _ => open.clear(),
            }
        }
    }

    fn value(&mut self, value: Value, open: &mut Vec<Value>) {
        let index = value.index();
        if self.uniformity.values[index] != Variability::Varying || self.live_ranges.fused[index] {
            return;
        }
        let once = self.live_ranges.uses[index] == 1;
        if let Inst::Load { place, count: 1 } = self.kir.inst(value) {
            if once && self.kir.ty(value) == Type::F32 && self.is_fusible(place) {
                open.push(value);
            }
        } else if let Some(mul_add) = as_mul_add(self.kir, &self.live_ranges.fused, value) {
            for operand in mul_add.operands {
                if let MulAddOperand::Value(operand) = operand
                    && matches!(self.kir.inst(operand), Inst::Load { .. })
                    && open.contains(&operand)
                {
                    self.live_ranges.fused[operand.index()] = true;
                }
            }
            self.link(value, mul_add, open);
            if once {
                open.push(value);
            }
        }
    }

    /// Records a multiply-add as a stage, and fuses the previous value of its chain into it.
    fn link(&mut self, value: Value, mul_add: MulAdd, open: &[Value]) {
        let stages = &self.stages;
        let is_open =
            |value| open.contains(&value) && stages.get(&value).is_some_and(|n| *n < MAX_STAGES);
        let Some((_, link)) = mul_add.as_stage(self.uniformity, is_open) else { return };
        let stages = match link {
            None => 1,
            Some(ChainLink { from, end }) => {
                self.live_ranges.fused[from.index()] = true;
                // Only the last stage of a chain may use the previous value in its product.
                if end == ChainEnd::Addend { self.stages[&from] + 1 } else { MAX_STAGES }
            }
        };
        self.stages.insert(value, stages);
    }

    /// Returns whether an access is affine and word-aligned, to a binding or workgroup memory.
    fn is_fusible(&self, place: &Place) -> bool {
        let affine = place
            .index
            .is_some_and(|index| self.uniformity.values[index.index()] == Variability::Affine);
        let words = place.stride.is_multiple_of(4) && place.offset.is_multiple_of(4);
        affine
            && words
            && matches!(place.space, AddressSpace::Binding(_) | AddressSpace::Workgroup(_))
    }
}
