//! Lowers `switch` to a chain of comparisons.

use naga::{Block, SwitchCase, SwitchValue};

use super::Lower;
use super::frame::{Expr, Targets};
use crate::kir::{BinaryOp, Const, Label, Stmt, Value};
use crate::{Location, ShaderError};

/// Maximum number of clauses that are lowered to nested `if`s. A `switch` with more is lowered to
/// a sequence of `if`s, each of which ends with an exit from the `switch`.
const MAX_NESTED_CLAUSES: usize = 8;

/// A clause other than the default: the values that select it, and the bodies that are then
/// executed, those of fall-through included.
struct Clause<'m> {
    values: Vec<Const>,
    bodies: Vec<&'m Block>,
}

impl<'m> Lower<'m> {
    /// Lowers a switch.
    pub(super) fn lower_switch(
        &mut self,
        selector: Expr,
        cases: &'m [SwitchCase],
    ) -> Result<(), ShaderError> {
        let selector = self.scalar(selector)?;
        let location = self.builder.position();
        let (clauses, default) = clauses(cases);
        let label = self.begin_scope()?;
        let continue_to = self.frame.targets.last().and_then(|outer| outer.continue_to);
        self.frame.targets.push(Targets { break_to: label, continue_to });
        if clauses.len() <= MAX_NESTED_CLAUSES {
            self.lower_nested(selector, &clauses, &default, location)?;
        } else {
            self.lower_sequence(selector, &clauses, &default, label, location)?;
        }
        self.frame.targets.pop();
        self.end_scope(label);
        Ok(())
    }

    /// Lowers each clause in the `else` block of the one before.
    fn lower_nested(
        &mut self,
        selector: Value,
        clauses: &[Clause<'m>],
        default: &[&'m Block],
        location: Option<Location>,
    ) -> Result<(), ShaderError> {
        let Some((first, rest)) = clauses.split_first() else {
            return self.lower_bodies(default);
        };
        let condition = self.is_one_of(selector, &first.values);
        self.begin_block()?;
        self.lower_bodies(&first.bodies)?;
        let then_block = self.end_block();
        self.begin_block()?;
        self.lower_nested(selector, rest, default, location)?;
        let else_block = self.end_block();
        self.builder.push(Stmt::If { condition, then_block, else_block, at: location });
        Ok(())
    }

    /// Lowers the clauses one after the other; each exits the switch at its end.
    fn lower_sequence(
        &mut self,
        selector: Value,
        clauses: &[Clause<'m>],
        default: &[&'m Block],
        label: Label,
        location: Option<Location>,
    ) -> Result<(), ShaderError> {
        for clause in clauses {
            let condition = self.is_one_of(selector, &clause.values);
            self.begin_block()?;
            self.lower_bodies(&clause.bodies)?;
            self.emit_break(label);
            let (then_block, else_block) = (self.end_block(), Vec::new());
            self.builder.push(Stmt::If { condition, then_block, else_block, at: location });
        }
        self.lower_bodies(default)
    }

    fn lower_bodies(&mut self, bodies: &[&'m Block]) -> Result<(), ShaderError> {
        bodies.iter().try_for_each(|body| self.statements(body))
    }

    /// Emits the condition that the selector is one of these values.
    fn is_one_of(&mut self, selector: Value, values: &[Const]) -> Value {
        let mut any = None;
        for &value in values {
            let value = self.constant(value);
            let equal = self.builder.binary(BinaryOp::Eq, selector, value);
            any = Some(match any {
                Some(others) => self.builder.binary(BinaryOp::Or, others, equal),
                None => equal,
            });
        }
        any.unwrap_or_else(|| self.constant(Const::bool(false)))
    }
}

/// Returns the clauses of a switch other than the default, and the bodies of the default.
fn clauses(cases: &[SwitchCase]) -> (Vec<Clause<'_>>, Vec<&Block>) {
    let (mut clauses, mut default) = (Vec::new(), Vec::new());
    let mut values = Vec::new();
    let mut is_default = false;
    for (index, case) in cases.iter().enumerate() {
        match case.value {
            SwitchValue::I32(value) => values.push(Const::i32(value)),
            SwitchValue::U32(value) => values.push(Const::u32(value)),
            SwitchValue::Default => is_default = true,
        }
        // naga lowers `case 1, 2:` to an empty case that falls through to the next.
        if case.fall_through && case.body.is_empty() {
            continue;
        }
        let bodies = fall_through_bodies(&cases[index..]);
        let values = std::mem::take(&mut values);
        if std::mem::take(&mut is_default) {
            default = bodies;
        } else {
            clauses.push(Clause { values, bodies });
        }
    }
    (clauses, default)
}

/// Returns the body of the first case, and those of the cases that it falls through to.
fn fall_through_bodies(cases: &[SwitchCase]) -> Vec<&Block> {
    let falling = cases.iter().take_while(|case| case.fall_through).count();
    cases.iter().take(falling + 1).map(|case| &case.body).collect()
}
