//! Conditions that may come out the same for all lanes: comparisons of affine values, and what they
//! are joined to. Whether they did is noted by number when the kernel is executed; then lanes are
//! only filled in for those who know nothing of that.

use scry_ir::kir::{BinaryOp, Class, Facts, Inst, Kir, Stmt, Type, Value};

use super::liveness::{Lives, for_each_stmt};
use super::values::Home;
use super::{Emitter, affine};
use crate::code::{Condition, Step};

/// The conditions of a kernel, by value.
pub(super) struct Conditions {
    numbers: Vec<Option<u32>>,
    /// Uses by those who look whether a condition is the same for all lanes.
    informed: Vec<u32>,
    pub(super) count: usize,
}

/// Finds the conditions of a kernel.
pub(super) fn conditions(kir: &Kir, facts: &Facts, lives: &Lives) -> Conditions {
    let len = kir.values.len();
    let mut found = Conditions { numbers: vec![None; len], informed: vec![0; len], count: 0 };
    for_each_stmt(&kir.body, &mut |stmt| match stmt {
        Stmt::Let(value) => {
            let joined = joined(kir, *value).filter(|_| facts.value(*value) == Class::Varying);
            let joined = joined.filter(|(_, operands)| found.have(operands));
            if joined.is_some() || affine::comparison(kir, facts, *value).is_some() {
                found.numbers[value.index()] = Some(found.count as u32);
                found.count += 1;
            }
            let operands = joined.map(|(_, operands)| operands);
            operands.into_iter().flatten().for_each(|operand| found.informed[operand.index()] += 1);
        }
        Stmt::If { condition, .. } if lives.left[condition.index()] => {
            kir.inst(*condition).for_each_operand(|part| found.informed[part.index()] += 1);
        }
        Stmt::If { condition, .. } => found.informed[condition.index()] += 1,
        _ => {}
    });
    found
}

/// The operands of a conjunction, which is told by `true`, or of a disjunction.
fn joined(kir: &Kir, value: Value) -> Option<(bool, [Value; 2])> {
    match *kir.inst(value) {
        Inst::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if kir.ty(value) == Type::Bool => {
            Some((op == BinaryOp::And, [a, b]))
        }
        _ => None,
    }
}

impl Conditions {
    fn have(&self, values: &[Value]) -> bool {
        values.iter().all(|value| self.numbers[value.index()].is_some())
    }
}

impl Emitter<'_> {
    /// The number of a condition, if it may be the same for all lanes.
    pub(super) fn number(&self, value: Value) -> Option<u32> {
        self.conditions.numbers[value.index()]
    }

    /// A condition whose lanes are in a register, or that is defined there.
    pub(super) fn condition(&self, value: Value, lanes: u32) -> Option<Condition> {
        let index = value.index();
        let fill = self.conditions.informed[index] < self.lives.uses[index];
        self.number(value).map(|number| Condition { number, lanes, fill })
    }

    /// A conjunction or disjunction of conditions; whether it is one.
    pub(super) fn join(&mut self, value: Value) -> bool {
        let Some((and, [a, b])) = joined(self.kir, value) else { return false };
        if self.number(value).is_none() {
            return false;
        }
        let Home::Lanes(d) = self.define(value) else { return false };
        let [of_a, of_b] = [a, b].map(|operand| self.lanes(operand).start);
        let (Some(d), Some(a), Some(b)) =
            (self.condition(value, d), self.condition(a, of_a), self.condition(b, of_b))
        else {
            return false;
        };
        self.push(Step::Both { and, d, a, b });
        true
    }
}
