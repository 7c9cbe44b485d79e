//! Uniform and affine values that are needed in lane registers.
//!
//! A uniform value has no lane register of its own, and that of an affine value is not filled. If
//! an operation on lanes uses such a value, it is expanded to lanes once, after its definition.

use scry_ir::kir::{Inst, Kir, Stmt, Type, Uniformity, Value, Variability, for_each_stmt};

use super::comparison::comparison;
use super::liveness::LiveRanges;

/// Returns which values are needed in lane registers.
pub(crate) fn demand(kir: &Kir, uniformity: &Uniformity, live_ranges: &LiveRanges) -> Vec<bool> {
    let mut demand = Demand { kir, uniformity, live_ranges, wanted: vec![false; kir.values.len()] };
    for_each_stmt(&kir.body, &mut |stmt| demand.stmt(stmt));
    demand.wanted
}

struct Demand<'a> {
    kir: &'a Kir,
    uniformity: &'a Uniformity,
    live_ranges: &'a LiveRanges,
    wanted: Vec<bool>,
}

impl Demand<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(value) => self.inst(*value),
            Stmt::Set(var, value) => {
                if self.uniformity.vars[var.index()].variability == Variability::Varying {
                    self.want(*value);
                }
            }
            Stmt::Store { values, .. } => values.iter().for_each(|value| self.want(*value)),
            Stmt::If { condition, .. } => {
                if self.uniformity.values[condition.index()] != Variability::Uniform {
                    self.want(*condition);
                }
            }
            Stmt::MatrixStore { .. }
            | Stmt::Loop { .. }
            | Stmt::Scope { .. }
            | Stmt::Break(_)
            | Stmt::Barrier(..) => {}
        }
    }

    fn inst(&mut self, value: Value) {
        let inst = self.kir.inst(value);
        let varying = self.uniformity.values[value.index()] == Variability::Varying;
        match inst {
            Inst::Get(_) | Inst::Extra(..) => {}
            _ if self.live_ranges.fused[value.index()] && self.kir.ty(value) == Type::Bool => {}
            // Indices that are uniform or affine are used as such; varying ones have lanes.
            Inst::Load { .. } | Inst::WorkgroupUniformLoad { .. } => {}
            Inst::Atomic { value, compare, .. } => {
                value.iter().chain(compare).for_each(|operand| self.want(*operand));
            }
            _ if varying && comparison(self.kir, self.uniformity, value).is_none() => {
                inst.for_each_operand(|operand| self.want(operand));
            }
            _ => {}
        }
    }

    fn want(&mut self, value: Value) {
        self.wanted[value.index()] = true;
        let inst = self.kir.inst(value);
        if !self.live_ranges.fused[value.index()] || matches!(inst, Inst::Load { .. }) {
            return;
        }
        // The uniform operands of a fused branch condition need no lanes.
        let condition = self.kir.ty(value) == Type::Bool;
        inst.for_each_operand(|operand| {
            let uniform = self.uniformity.value(operand) == Variability::Uniform;
            self.wanted[operand.index()] |= !(condition && uniform);
        });
    }
}
