//! `switch`: a chain of comparisons.

use naga::{Block, SwitchCase, SwitchValue};

use super::Lower;
use super::frame::{Expr, Targets};
use crate::kir::{BinaryOp, Const, Label, Stmt, Value};
use crate::{Location, ShaderError};

/// Maximum nesting of arms; further ones follow one another, each leaving the switch.
const NESTED: usize = 8;

/// An arm: executed for some values, or by default if there are none.
struct Arm<'m> {
    values: Vec<Const>,
    bodies: Vec<&'m Block>,
}

impl<'m> Lower<'m> {
    /// Lowers a switch.
    pub(super) fn switch(
        &mut self,
        selector: Expr,
        cases: &'m [SwitchCase],
    ) -> Result<(), ShaderError> {
        let selector = self.scalar(selector)?;
        let at = self.builder.position();
        let (arms, default) = arms(cases);
        let label = self.enter_scope()?;
        let next = self.frame.targets.last().and_then(|outer| outer.next);
        self.frame.targets.push(Targets { leave: label, next });
        if arms.len() <= NESTED {
            self.nest(selector, &arms, &default, at)?;
        } else {
            self.list(selector, &arms, &default, label, at)?;
        }
        self.frame.targets.pop();
        self.exit_scope(label);
        Ok(())
    }

    /// Lowers each arm in the `else` block of the one before.
    fn nest(
        &mut self,
        selector: Value,
        arms: &[Arm<'m>],
        default: &[&'m Block],
        at: Option<Location>,
    ) -> Result<(), ShaderError> {
        let Some((first, rest)) = arms.split_first() else {
            return self.bodies(default);
        };
        let condition = self.is_one_of(selector, &first.values);
        self.enter()?;
        self.bodies(&first.bodies)?;
        let then_block = self.exit();
        self.enter()?;
        self.nest(selector, rest, default, at)?;
        let else_block = self.exit();
        self.builder.push(Stmt::If { condition, then_block, else_block, at });
        Ok(())
    }

    /// Lowers the arms one after the other.
    fn list(
        &mut self,
        selector: Value,
        arms: &[Arm<'m>],
        default: &[&'m Block],
        label: Label,
        at: Option<Location>,
    ) -> Result<(), ShaderError> {
        for arm in arms {
            let condition = self.is_one_of(selector, &arm.values);
            self.enter()?;
            self.bodies(&arm.bodies)?;
            self.leave(label);
            let then_block = self.exit();
            self.builder.push(Stmt::If { condition, then_block, else_block: Vec::new(), at });
        }
        self.bodies(default)
    }

    fn bodies(&mut self, bodies: &[&'m Block]) -> Result<(), ShaderError> {
        bodies.iter().try_for_each(|body| self.statements(body))
    }

    fn is_one_of(&mut self, selector: Value, values: &[Const]) -> Value {
        let mut any = None;
        for &value in values {
            let value = self.constant(value);
            let this = self.builder.binary(BinaryOp::Eq, selector, value);
            any = Some(match any {
                Some(others) => self.builder.binary(BinaryOp::Or, others, this),
                None => this,
            });
        }
        any.unwrap_or_else(|| self.constant(Const::bool(false)))
    }
}

/// Returns the arms of a switch, and the default blocks.
fn arms(cases: &[SwitchCase]) -> (Vec<Arm<'_>>, Vec<&Block>) {
    let (mut arms, mut default) = (Vec::new(), Vec::new());
    let mut arm = Arm { values: Vec::new(), bodies: Vec::new() };
    let mut is_default = false;
    for (at, case) in cases.iter().enumerate() {
        match case.value {
            SwitchValue::I32(value) => arm.values.push(Const::i32(value)),
            SwitchValue::U32(value) => arm.values.push(Const::u32(value)),
            SwitchValue::Default => is_default = true,
        }
        if case.fall_through && case.body.is_empty() {
            continue;
        }
        arm.bodies = executed(&cases[at..]);
        let done = std::mem::replace(&mut arm, Arm { values: Vec::new(), bodies: Vec::new() });
        if std::mem::take(&mut is_default) {
            default = done.bodies;
        } else {
            arms.push(done);
        }
    }
    (arms, default)
}

/// Returns the bodies that are executed from the first case on.
fn executed(cases: &[SwitchCase]) -> Vec<&Block> {
    let falling = cases.iter().take_while(|case| case.fall_through).count();
    cases.iter().take(falling + 1).map(|case| &case.body).collect()
}
