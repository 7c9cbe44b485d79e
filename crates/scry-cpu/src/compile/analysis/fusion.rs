//! Loads and stores that are done by the arithmetic between them.
//!
//! A load that only a sum of a product needs, in the same block and with no write between, is left
//! to that; so is the store of its result, if that is all that becomes of it. The machine then need
//! not bring words into registers and take them from there.

use scry_ir::kir::{BinaryOp, Block, Class, Facts, Inst, Kir, Place, Space, Stmt, Type, Value};

use super::liveness::Lives;

/// An operand of a sum of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    Value(Value),
    /// What changes nothing where it is multiplied with.
    One,
    /// What changes nothing where it is added, not even the sign of a zero.
    Nothing,
}

/// `a * b + c`, with signs.
pub(crate) struct Sum {
    pub(crate) terms: [Term; 3],
    pub(crate) negated: [bool; 2],
}

/// A value as a sum of a product, if it can be seen as one.
pub(crate) fn as_sum(kir: &Kir, left: &[bool], value: Value) -> Option<Sum> {
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
pub(crate) fn leave(kir: &Kir, facts: &Facts, lives: &mut Lives) {
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
