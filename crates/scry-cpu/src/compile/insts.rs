//! Instructions.

use scry_ir::kir::{
    BinaryOp, Builtin, Inst, ShuffleSource, Stmt, SubgroupOp, Type, Value, Variability,
};

use super::emitter::{Emitter, Location, Reg};
use crate::SUBGROUP_SIZE;
use crate::code::{MatrixProduct, Step, SubgroupExchange};
use crate::lanes::{LaneOp, ternary_by_isa};
use crate::ops;

impl Emitter<'_> {
    /// Compiles the definition of a value; `rest` are the following statements of the block.
    pub(super) fn inst(&mut self, value: Value, rest: &[Stmt]) {
        if self.live_ranges.fused[value.index()] {
            return;
        }
        match *self.kir.inst(value) {
            Inst::Const(constant) => self.constant(value, constant),
            Inst::Get(var) => self.read_var(value, var),
            Inst::Extra(..) => {}
            // The barriers of a workgroup-uniform load need no step: all invocations of a workgroup
            // are at the same instruction.
            Inst::Load { place, count } | Inst::WorkgroupUniformLoad { place, count } => {
                self.load(value, place, count);
            }
            Inst::Atomic { op, place, value: operand, compare } => {
                self.atomic(value, op, place, operand, compare);
            }
            Inst::Builtin(builtin) => self.builtin(value, builtin),
            Inst::ArrayLength { binding, offset, stride } => {
                if let Location::Scalar(d) = self.define(value) {
                    self.push(Step::Length { d, binding, offset, stride });
                }
                self.expand_if_needed(value);
            }
            Inst::Subgroup(op) => self.subgroup(value, op),
            Inst::MultiplyFragments { a, b, c } => self.multiply_add(value, a, b, c),
            _ => self.pure(value, rest),
        }
    }

    fn pure(&mut self, value: Value, rest: &[Stmt]) {
        match self.variability(value) {
            Variability::Affine => {
                let done = self.affine_inst(value);
                debug_assert!(done, "{value} is not affine");
            }
            Variability::Uniform => {
                if let Location::Scalar(d) = self.define(value) {
                    self.operation(value, Reg::Scalar(d), true);
                }
            }
            Variability::Varying if self.compare(value) || self.logical(value) => {}
            Variability::Varying => {
                let d = match self.destination(value, rest) {
                    Some(start) => {
                        self.locations[value.index()] = Some(Location::Lanes(start));
                        Reg::lanes(start)
                    }
                    None => match self.define(value) {
                        Location::Lanes(start) => Reg::lanes(start),
                        Location::Scalar(_) | Location::Affine(_) => return,
                    },
                };
                self.operation(value, d, false);
            }
        }
        self.expand_if_needed(value);
    }

    /// Compiles a pure instruction on scalars or on lanes.
    fn operation(&mut self, value: Value, d: Reg, uniform: bool) {
        if self.memory_mul_add(value, d) {
            return;
        }
        let inst = *self.kir.inst(value);
        if let Inst::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = inst
            && self.add_fused_product(op, a, b, d)
        {
            return;
        }
        let ty = self.kir.ty(value);
        let (op, operands): (Option<&'static dyn LaneOp>, Vec<Value>) = match inst {
            Inst::Unary(op, a) => (ops::unary(op, self.kir.ty(a)), vec![a]),
            Inst::Binary(op, a, b) => (ops::binary(op, self.kir.ty(a)), vec![a, b]),
            Inst::Fma(a, b, c) => (ops::fma(ty), vec![a, b, c]),
            Inst::Select(c, a, b) => (Some(ops::select(ty)), vec![c, a, b]),
            Inst::Bitcast(a) => (Some(ops::copy(ty)), vec![a]),
            Inst::Convert(a) => (ops::convert(self.kir.ty(a), ty), vec![a]),
            _ => (None, Vec::new()),
        };
        let Some(op) = op else { return self.narrow_inst(value, d, uniform) };
        let operands: Vec<Reg> =
            operands.into_iter().map(|operand| self.operand(operand, uniform)).collect();
        self.apply(op, d, &operands);
    }

    /// Compiles a sum or difference with a fused product. Returns false, and emits nothing, if
    /// neither operand is a fused product.
    fn add_fused_product(&mut self, op: BinaryOp, a: Value, b: Value, d: Reg) -> bool {
        let product_first = self.live_ranges.fused[a.index()];
        if !product_first && !self.live_ranges.fused[b.index()] {
            return false;
        }
        let (product, other) = if product_first { (a, b) } else { (b, a) };
        let Inst::Binary(_, x, y) = *self.kir.inst(product) else { return false };
        let double = self.kir.ty(product) == Type::F64;
        let fused = match (op, product_first) {
            (BinaryOp::Add, _) => product_plus(double),
            (_, true) => product_minus(double),
            (_, false) => minus_product(double),
        };
        let operands = [x, y, other].map(|operand| Reg::Lanes(self.lanes(operand)));
        self.apply(fused, d, &operands);
        true
    }

    fn builtin(&mut self, value: Value, builtin: Builtin) {
        let location = self.define(value);
        let invocations = self.code.lane_layout.invocations() as u64;
        let size = u64::from(SUBGROUP_SIZE);
        match (builtin, location) {
            (Builtin::LocalId(axis), Location::Affine(d)) => self.push(Step::LocalId { axis, d }),
            (Builtin::GroupId(_), Location::Affine(d)) => self.push(Step::GroupIdAffine(d)),
            (Builtin::GroupId(axis), Location::Scalar(d)) => self.push(Step::GroupId { axis, d }),
            (Builtin::GroupCount(axis), Location::Scalar(d)) => {
                self.push(Step::GroupCount { axis, d });
            }
            (Builtin::SubgroupSize, Location::Scalar(d)) => self.code.constants.push((d, size)),
            (Builtin::SubgroupCount, Location::Scalar(d)) => {
                self.code.constants.push((d, invocations.div_ceil(size)));
            }
            (Builtin::SubgroupLane, Location::Lanes(d)) => self.push(Step::SubgroupLane { d }),
            (Builtin::SubgroupId, Location::Lanes(d)) => self.push(Step::SubgroupId { d }),
            (builtin, location) => debug_assert!(false, "{builtin:?} is {location:?}"),
        }
        self.expand_if_needed(value);
    }

    fn subgroup(&mut self, value: Value, op: SubgroupOp) {
        let (exchange, operand) = match op {
            SubgroupOp::Ballot { value, word } => (SubgroupExchange::Ballot { word }, value),
            SubgroupOp::Reduce { op, group, value } => {
                (SubgroupExchange::Reduce { op, group }, value)
            }
            SubgroupOp::Shuffle { source, value } => (self.shuffle(source), value),
        };
        let ty = self.kir.ty(operand);
        let operand = self.lanes(operand);
        if let Location::Lanes(d) = self.define(value) {
            self.push(Step::SubgroupExchange { ty, exchange, d, value: operand });
        }
    }

    fn multiply_add(&mut self, value: Value, a: [Value; 4], b: [Value; 2], c: [Value; 4]) {
        let (operand_type, accumulator_type) = (self.kir.ty(a[0]), self.kir.ty(value));
        let (a, b) = (a.map(|a| self.lanes(a)), b.map(|b| self.lanes(b)));
        let c = c.map(|c| self.lanes(c));
        let mut d = [0; 4];
        for (nth, d) in (value.0..).zip(&mut d) {
            if let Location::Lanes(start) = self.define(Value(nth)) {
                *d = start;
            }
        }
        self.push(Step::MatrixMultiplyAdd(Box::new(MatrixProduct {
            operand_type,
            accumulator_type,
            a,
            b,
            c,
            d,
        })));
    }

    fn shuffle(&mut self, source: ShuffleSource) -> SubgroupExchange {
        match source {
            ShuffleSource::First => SubgroupExchange::First,
            ShuffleSource::Lane(lane) => SubgroupExchange::Lane(self.lanes(lane)),
            ShuffleSource::Xor(by) => SubgroupExchange::Xor(self.lanes(by)),
            ShuffleSource::Up(by) => SubgroupExchange::Up(self.lanes(by)),
            ShuffleSource::Down(by) => SubgroupExchange::Down(self.lanes(by)),
            ShuffleSource::QuadLane(lane) => SubgroupExchange::QuadLane(self.lanes(lane)),
            ShuffleSource::QuadXor(by) => SubgroupExchange::QuadXor(by),
        }
    }
}

/// `a * b + c`.
pub(super) fn product_plus(double: bool) -> &'static dyn LaneOp {
    ops::fma(if double { Type::F64 } else { Type::F32 })
        .unwrap_or_else(|| unreachable!("f32 and f64 have a multiply-add"))
}

/// `a * b - c`.
pub(super) fn product_minus(double: bool) -> &'static dyn LaneOp {
    if double {
        ternary_by_isa(
            |a: f64, b: f64, c: f64| a.mul_add(b, -c),
            |a: f64, b: f64, c: f64| a * b - c,
        )
    } else {
        ternary_by_isa(
            |a: f32, b: f32, c: f32| a.mul_add(b, -c),
            |a: f32, b: f32, c: f32| a * b - c,
        )
    }
}

/// `c - a * b`.
pub(super) fn minus_product(double: bool) -> &'static dyn LaneOp {
    if double {
        ternary_by_isa(
            |a: f64, b: f64, c: f64| (-a).mul_add(b, c),
            |a: f64, b: f64, c: f64| c - a * b,
        )
    } else {
        ternary_by_isa(
            |a: f32, b: f32, c: f32| (-a).mul_add(b, c),
            |a: f32, b: f32, c: f32| c - a * b,
        )
    }
}
