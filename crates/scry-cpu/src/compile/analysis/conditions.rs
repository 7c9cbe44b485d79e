//! Conditions that may be uniform at run time: comparisons of affine values, and conjunctions and
//! disjunctions of them.

use scry_ir::kir::{
    BinaryOp, Inst, Kir, Stmt, Type, Uniformity, Value, Variability, for_each_stmt,
};

use super::comparison::comparison;
use super::liveness::LiveRanges;

/// The conditions of a kernel, by value.
pub(crate) struct Conditions {
    pub(crate) numbers: Vec<Option<u32>>,
    /// For each value, the number of uses that check at run time whether the condition is uniform.
    pub(crate) checked_uses: Vec<u32>,
    pub(crate) count: usize,
}

/// Finds the conditions of a kernel.
pub(crate) fn conditions(
    kir: &Kir,
    uniformity: &Uniformity,
    live_ranges: &LiveRanges,
) -> Conditions {
    let len = kir.values.len();
    let mut found = Conditions { numbers: vec![None; len], checked_uses: vec![0; len], count: 0 };
    for_each_stmt(&kir.body, &mut |stmt| match stmt {
        Stmt::Let(value) => {
            let logical = logical_operands(kir, *value)
                .filter(|_| uniformity.value(*value) == Variability::Varying);
            let logical = logical.filter(|(_, operands)| found.contain(operands));
            if logical.is_some() || comparison(kir, uniformity, *value).is_some() {
                found.numbers[value.index()] = Some(found.count as u32);
                found.count += 1;
            }
            let operands = logical.map(|(_, operands)| operands);
            operands
                .into_iter()
                .flatten()
                .for_each(|operand| found.checked_uses[operand.index()] += 1);
        }
        Stmt::If { condition, .. } if live_ranges.fused[condition.index()] => {
            kir.inst(*condition).for_each_operand(|part| found.checked_uses[part.index()] += 1);
        }
        Stmt::If { condition, .. } => found.checked_uses[condition.index()] += 1,
        _ => {}
    });
    found
}

/// Returns whether a value is a conjunction (`true`) or a disjunction (`false`), and its operands;
/// `None` for other values.
pub(crate) fn logical_operands(kir: &Kir, value: Value) -> Option<(bool, [Value; 2])> {
    match *kir.inst(value) {
        Inst::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) if kir.ty(value) == Type::Bool => {
            Some((op == BinaryOp::And, [a, b]))
        }
        _ => None,
    }
}

impl Conditions {
    fn contain(&self, values: &[Value]) -> bool {
        values.iter().all(|value| self.numbers[value.index()].is_some())
    }
}
