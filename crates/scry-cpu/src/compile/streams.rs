//! Loads and stores that are done by the arithmetic between them.
//!
//! A load that only a sum of a product needs, in the same block and with no write between, is left
//! to that; so is the store of its result, if that is all that becomes of it. The machine then need
//! not bring words into registers and take them from there.

use scry_ir::kir::{
    BinaryOp, Block, Class, Const, Facts, Inst, Kir, Place, Space, Stmt, Type, Value,
};

use super::Emitter;
use super::insts::{minus_product, product_minus, sum};
use super::liveness::Lives;
use super::values::{Home, Reg};
use crate::code::{Access, Operand, Step, Stream};
use crate::lanes::{LaneOp, Src};

/// An operand of a sum of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    Value(Value),
    /// What changes nothing where it is multiplied with.
    One,
    /// What changes nothing where it is added, not even the sign of a zero.
    Nothing,
}

/// `a * b + c`, with signs.
struct Sum {
    terms: [Term; 3],
    negated: [bool; 2],
}

/// A value as a sum of a product, if it can be seen as one.
fn as_sum(kir: &Kir, left: &[bool], value: Value) -> Option<Sum> {
    use Term::{Nothing, One, Value};
    if kir.ty(value) != Type::F32 {
        return None;
    }
    let product = |value: scry_ir::kir::Value| match *kir.inst(value) {
        Inst::Binary(BinaryOp::Mul, x, y) if left[value.index()] => Some((x, y)),
        _ => None,
    };
    let (terms, negated) = match *kir.inst(value) {
        Inst::Fma(a, b, c) => ([Value(a), Value(b), Value(c)], [false; 2]),
        Inst::Binary(BinaryOp::Mul, a, b) => ([Value(a), Value(b), Nothing], [false; 2]),
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
    Some(Sum { terms, negated })
}

/// Marks the loads that are left to what uses them, and the results that are left to their stores.
pub(super) fn leave(kir: &Kir, facts: &Facts, lives: &mut Lives) {
    Search { kir, facts, lives }.block(&kir.body);
}

struct Search<'a> {
    kir: &'a Kir,
    facts: &'a Facts,
    lives: &'a mut Lives,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        // Loads, and results, after which nothing was written.
        let mut open = Vec::new();
        for stmt in block {
            stmt.blocks().for_each(|inner| self.block(inner));
            match stmt {
                Stmt::Let(value) if matches!(self.kir.inst(*value), Inst::Atomic { .. }) => {
                    open.clear();
                }
                Stmt::Let(value) => self.value(*value, &mut open),
                Stmt::Set(..) => {}
                Stmt::Store { place, values } => {
                    if let [value] = values.as_slice()
                        && self.is_even(place)
                        && open.contains(value)
                        && !matches!(self.kir.inst(*value), Inst::Load { .. })
                    {
                        self.lives.left[value.index()] = true;
                    }
                    open.clear();
                }
                _ => open.clear(),
            }
        }
    }

    fn value(&mut self, value: Value, open: &mut Vec<Value>) {
        let index = value.index();
        if self.facts.values[index] != Class::Varying || self.lives.left[index] {
            return;
        }
        let once = self.lives.uses[index] == 1;
        if let Inst::Load { place, count: 1 } = self.kir.inst(value) {
            if once && self.kir.ty(value) == Type::F32 && self.is_even(place) {
                open.push(value);
            }
        } else if let Some(sum) = as_sum(self.kir, &self.lives.left, value) {
            for term in sum.terms {
                if let Term::Value(term) = term
                    && matches!(self.kir.inst(term), Inst::Load { .. })
                    && open.contains(&term)
                {
                    self.lives.left[term.index()] = true;
                }
            }
            if once {
                open.push(value);
            }
        }
    }

    /// Whether a place may be that of neighbours, or the same for many.
    fn is_even(&self, place: &Place) -> bool {
        let affine =
            place.index.is_some_and(|index| self.facts.values[index.index()] == Class::Affine);
        let words = place.stride.is_multiple_of(4) && place.offset.is_multiple_of(4);
        affine && words && matches!(place.space, Space::Binding(_) | Space::Workgroup(_))
    }
}

impl Emitter<'_> {
    /// Computes a value with the loads that were left to it; whether there are any.
    pub(super) fn stream(&mut self, value: Value, d: Reg) -> bool {
        let Reg::Lanes(d) = d else { return false };
        let Some(sum) = as_sum(self.kir, &self.lives.left, value) else { return false };
        let loads = |term: &Term| match term {
            Term::Value(value) => self.is_left_load(*value),
            Term::One | Term::Nothing => false,
        };
        let any = sum.terms.iter().any(loads);
        if any {
            self.push_stream(&sum, d.start, None);
        }
        any
    }

    /// Computes a value that was left to its store; whether it was.
    pub(super) fn stream_to(&mut self, value: Value, mut store: Access) -> bool {
        let Some(sum) = as_sum(self.kir, &self.lives.left, value) else { return false };
        if !self.lives.left[value.index()] {
            return false;
        }
        let Home::Lanes(d) = self.define(value) else { return false };
        store.from[0] = Src { start: d, step: 1 };
        self.push_stream(&sum, d, Some(store));
        true
    }

    fn is_left_load(&self, value: Value) -> bool {
        self.lives.left[value.index()] && matches!(self.kir.inst(value), Inst::Load { .. })
    }

    fn push_stream(&mut self, sum: &Sum, d: u32, store: Option<Access>) {
        let operands = sum.terms.map(|term| self.term(term));
        let (op, negated) = (op(sum.negated), sum.negated);
        self.push(Step::Stream(Box::new(Stream { op, operands, negated, d, store })));
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
