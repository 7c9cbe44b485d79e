//! Loads and stores that are done by the arithmetic between them.
//!
//! A load that only a sum of a product needs, in the same block and with no write between, is left
//! to that; so is the store of its result, if that is all that becomes of it. The machine then need
//! not bring words into registers and take them from there.

use std::collections::HashMap;

use scry_ir::kir::{
    BinaryOp, Block, Inst, Kir, Place, Space, Stmt, Type, Uniformity, Value, Variability,
};

use super::liveness::LiveRanges;
use crate::code::ChainEnd;
use crate::exec::MOST;

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
#[derive(Clone, Copy)]
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

/// How a value is computed from another one that was left to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// What was, or may be, left.
    pub(crate) from: Value,
    pub(crate) end: ChainEnd,
}

impl Sum {
    /// The same with a factor second that is one value for all lanes, if there is one. Signs of
    /// what is added go to the product, if that is a value as it is.
    fn with_uniform_factor(mut self, uniformity: &Uniformity) -> Option<Self> {
        let uniform = |term| match term {
            Term::Value(value) => uniformity.values[value.index()] == Variability::Uniform,
            Term::One | Term::Nothing => true,
        };
        if !uniform(self.terms[1]) {
            self.terms.swap(0, 1);
        }
        if self.negated[1] && self.terms[1] == Term::One {
            self.terms.swap(0, 2);
            self.negated = [true, false];
        }
        let [x, y, _] = self.terms;
        (uniform(y) && !uniform(x) && !self.negated[1]).then_some(self)
    }

    /// The same as a stage of a chain, which begins there or goes on from what `goes` says of a
    /// value; and from which one.
    pub(crate) fn staged(
        self,
        uniformity: &Uniformity,
        goes: impl Fn(Value) -> bool,
    ) -> Option<(Self, Option<Link>)> {
        let mut sum = self.with_uniform_factor(uniformity)?;
        let from = |term: Term| match term {
            Term::Value(value) if goes(value) => Some(value),
            _ => None,
        };
        let varying = |term| match term {
            Term::Value(value) => uniformity.values[value.index()] == Variability::Varying,
            Term::One | Term::Nothing => false,
        };
        if sum.terms[1] == Term::One && from(sum.terms[2]).is_none() && !sum.negated[0] {
            sum.terms.swap(0, 2);
        }
        let [x, _, c] = sum.terms;
        if let Some(from) = from(c) {
            return Some((sum, Some(Link { from, end: ChainEnd::Term })));
        }
        if let Some(from) = from(x) {
            let end = if c == Term::Nothing { ChainEnd::Scaled } else { ChainEnd::Factor };
            let good = c == Term::Nothing || varying(c);
            return good.then_some((sum, Some(Link { from, end })));
        }
        varying(c).then_some((sum, None))
    }
}

/// Marks the loads that are left to what uses them, and the results that are left to their stores.
pub(crate) fn leave(kir: &Kir, uniformity: &Uniformity, live_ranges: &mut LiveRanges) {
    Search { kir, uniformity, live_ranges, stages: HashMap::new() }.block(&kir.body);
}

struct Search<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    live_ranges: &'a mut LiveRanges,
    /// Stages of the chains that end with a value, and may go on.
    stages: HashMap<Value, usize>,
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
                        self.live_ranges.left[value.index()] = true;
                    }
                    open.clear();
                }
                _ => open.clear(),
            }
        }
    }

    fn value(&mut self, value: Value, open: &mut Vec<Value>) {
        let index = value.index();
        if self.uniformity.values[index] != Variability::Varying || self.live_ranges.left[index] {
            return;
        }
        let once = self.live_ranges.uses[index] == 1;
        if let Inst::Load { place, count: 1 } = self.kir.inst(value) {
            if once && self.kir.ty(value) == Type::F32 && self.is_even(place) {
                open.push(value);
            }
        } else if let Some(sum) = as_sum(self.kir, &self.live_ranges.left, value) {
            for term in sum.terms {
                if let Term::Value(term) = term
                    && matches!(self.kir.inst(term), Inst::Load { .. })
                    && open.contains(&term)
                {
                    self.live_ranges.left[term.index()] = true;
                }
            }
            self.link(value, sum, open);
            if once {
                open.push(value);
            }
        }
    }

    /// Leaves a value to the next sum of a chain.
    fn link(&mut self, value: Value, sum: Sum, open: &[Value]) {
        let stages = &self.stages;
        let goes = |value| open.contains(&value) && stages.get(&value).is_some_and(|n| *n < MOST);
        let Some((_, link)) = sum.staged(self.uniformity, goes) else { return };
        let stages = match link {
            None => 1,
            Some(Link { from, end }) => {
                self.live_ranges.left[from.index()] = true;
                if end == ChainEnd::Term { self.stages[&from] + 1 } else { MOST }
            }
        };
        self.stages.insert(value, stages);
    }

    /// Whether a place may be that of neighbours, or the same for many.
    fn is_even(&self, place: &Place) -> bool {
        let affine = place
            .index
            .is_some_and(|index| self.uniformity.values[index.index()] == Variability::Affine);
        let words = place.stride.is_multiple_of(4) && place.offset.is_multiple_of(4);
        affine && words && matches!(place.space, Space::Binding(_) | Space::Workgroup(_))
    }
}
