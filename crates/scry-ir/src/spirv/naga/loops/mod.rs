//! Which loops surely end.
//!
//! A loop that never ends is undefined behaviour to some drivers, so the SPIR-V writer bounds
//! loops with a counter of its own, at a cost. This analysis finds the loops that need none: a
//! local integer changes by a constant step exactly once on every turn, and a test that runs on
//! every turn leaves the loop when the integer reaches a bound. Whatever is not of this shape is
//! simply not proven.

mod facts;
mod ranges;

use std::cell::Cell;

use crate::kir::termination::counter::{Counter, Interval, Keep, Step};
use facts::{Facts, continues, exits, straight_line};
use naga::{
    BinaryOperator, Binding, Block, BuiltIn, Expression, Function, Handle, Literal, LocalVariable,
    Module, ScalarKind, Statement, TypeInner, UnaryOperator,
};

type Expr = Handle<Expression>;
type Local = Handle<LocalVariable>;

/// For each function, and then for each entry point, one verdict a loop: true if it surely ends.
/// Outer loops come before the loops inside them.
pub(crate) fn verdicts(module: &Module) -> Vec<Vec<bool>> {
    let judge = |function, kernel| {
        let prover = Prover { module, function, kernel };
        let mut found = Vec::new();
        prover.block(&function.body, false, &mut found);
        found
    };
    let mut verdicts = Vec::new();
    for (_, function) in module.functions.iter() {
        verdicts.push(judge(function, None));
    }
    for entry in &module.entry_points {
        verdicts.push(judge(&entry.function, Some(entry.workgroup_size)));
    }
    verdicts
}

/// Proves the loops of one function.
struct Prover<'a> {
    module: &'a Module,
    function: &'a Function,
    /// The workgroup size, in an entry point.
    kernel: Option<[u32; 3]>,
}

/// A loop statement, and what stands before it in its block.
struct Loop<'a> {
    body: &'a Block,
    continuing: &'a Block,
    break_if: Option<Expr>,
    before: &'a [Statement],
    nested: bool,
}

/// What is known while one loop is looked at.
struct Turn<'a> {
    facts: Facts,
    /// The statements that run on every turn after which the loop goes on, in order.
    straight: Vec<&'a Statement>,
    /// How many more conditions may be looked at.
    budget: Cell<u32>,
}

/// Conditions looked at in one loop: far more than people write, few enough for a hostile source.
const CONDITIONS: u32 = 64;

/// A condition and the value that it must have for the loop to go on.
#[derive(Clone, Copy)]
struct Condition {
    expression: Expr,
    value: bool,
}

impl<'a> Prover<'a> {
    fn block(&self, block: &'a Block, nested: bool, found: &mut Vec<bool>) {
        for (at, statement) in block.iter().enumerate() {
            match statement {
                Statement::Block(inner) => self.block(inner, nested, found),
                Statement::If { accept, reject, .. } => {
                    self.block(accept, nested, found);
                    self.block(reject, nested, found);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.block(&case.body, nested, found);
                    }
                }
                Statement::Loop { body, continuing, break_if } => {
                    let this = Loop {
                        body,
                        continuing,
                        break_if: *break_if,
                        before: &block[..at],
                        nested,
                    };
                    found.push(self.ends(&this));
                    self.block(body, true, found);
                    self.block(continuing, true, found);
                }
                _ => {}
            }
        }
    }

    /// True if a loop surely ends.
    fn ends(&self, this: &Loop<'a>) -> bool {
        let mut facts = Facts::default();
        facts.add(self.function, this.body);
        facts.add(self.function, this.continuing);
        let mut straight = Vec::new();
        straight_line(this.body, &mut straight);
        straight_line(this.continuing, &mut straight);
        let turn = Turn { facts, straight, budget: Cell::new(CONDITIONS) };

        let mut conditions = Vec::new();
        for statement in &turn.straight {
            match statement {
                Statement::Break | Statement::Return { .. } | Statement::Kill => return true,
                Statement::If { condition, accept, reject } => {
                    let value = match (exits(accept), exits(reject)) {
                        (true, true) => return true,
                        (true, false) => false,
                        (false, true) => true,
                        (false, false) => continue,
                    };
                    self.imply(&turn, *condition, value, &mut conditions);
                }
                _ => {}
            }
        }
        if let Some(condition) = this.break_if {
            self.imply(&turn, condition, false, &mut conditions);
        }
        conditions.into_iter().any(|condition| self.ends_by(this, &turn, condition))
    }

    /// Collects what else holds when `expression` is `value` at its test.
    #[inline(never)]
    fn imply(&self, turn: &Turn<'a>, expression: Expr, value: bool, out: &mut Vec<Condition>) {
        let Some(budget) = turn.budget.get().checked_sub(1) else {
            return;
        };
        turn.budget.set(budget);
        match self.function.expressions[expression] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => {
                self.imply(turn, expr, !value, out)
            }
            Expression::Binary { op, left, right }
                if (op == BinaryOperator::LogicalAnd && value)
                    || (op == BinaryOperator::LogicalOr && !value) =>
            {
                self.imply(turn, left, value, out);
                self.imply(turn, right, value, out);
            }
            Expression::Load { .. } => self.imply_short_circuit(turn, expression, value, out),
            _ => out.push(Condition { expression, value }),
        }
    }

    /// `a && b` and `a || b` arrive as an `if` that stores into a temporary: one arm the constant
    /// that settles the matter, the other arm the right-hand side.
    fn imply_short_circuit(
        &self,
        turn: &Turn<'a>,
        load: Expr,
        value: bool,
        out: &mut Vec<Condition>,
    ) {
        let Some(flag) = self.loaded_local(load) else {
            return;
        };
        if turn.facts.stores(flag) != 2 || turn.facts.escapes(flag) {
            return;
        }
        let choice = turn.straight.iter().enumerate().find_map(|(at, statement)| match statement {
            Statement::If { condition, accept, reject } if !continues(statement) => {
                let accepted = self.stored_at_top(accept, flag)?;
                let rejected = self.stored_at_top(reject, flag)?;
                Some((at, *condition, accepted, rejected))
            }
            _ => None,
        });
        let Some((at, condition, accepted, rejected)) = choice else {
            return;
        };
        let loads = |range: &naga::Range<Expression>| range.clone().any(|h| h == load);
        let loaded_after = turn.straight[at + 1..]
            .iter()
            .any(|statement| matches!(statement, Statement::Emit(range) if loads(range)));
        if !loaded_after {
            return;
        }
        if self.is_bool(rejected, !value) {
            self.imply(turn, condition, true, out);
            self.imply(turn, accepted, value, out);
        } else if self.is_bool(accepted, !value) {
            self.imply(turn, condition, false, out);
            self.imply(turn, rejected, value, out);
        }
    }

    fn is_bool(&self, expression: Expr, value: bool) -> bool {
        let expression = &self.function.expressions[expression];
        matches!(expression, Expression::Literal(Literal::Bool(it)) if *it == value)
    }

    /// The value that a block stores into a local, by a statement of its own.
    fn stored_at_top(&self, block: &Block, local: Local) -> Option<Expr> {
        block.iter().find_map(|statement| match *statement {
            Statement::Store { pointer, value } if self.is_local(pointer, local) => Some(value),
            _ => None,
        })
    }

    /// True if a loop ends because `condition` fails at last.
    fn ends_by(&self, this: &Loop<'a>, turn: &Turn<'a>, condition: Condition) -> bool {
        let Expression::Binary { op, left, right } =
            self.function.expressions[condition.expression]
        else {
            return false;
        };
        let Some(keep) = keep(op, condition.value) else { return false };
        let ends = self
            .counter_ends(this, turn, left, keep, right)
            .or_else(|| self.counter_ends(this, turn, right, keep.mirrored(), left));
        ends == Some(true)
    }

    fn counter_ends(
        &self,
        this: &Loop<'a>,
        turn: &Turn<'a>,
        counter: Expr,
        keep: Keep,
        bound: Expr,
    ) -> Option<bool> {
        let local = self.loaded_local(counter)?;
        if !turn.facts.evaluates(counter)
            || turn.facts.stores(local) != 1
            || turn.facts.escapes(local)
            || (keep == Keep::NotEqual && turn.facts.evaluates(bound))
        {
            return None;
        }
        let all = self.integer_range(local)?;
        let step = self.step(turn, local, all)?;
        let start = match step {
            Step::Multiply(_) => self.start(this, local),
            _ => None,
        };
        let mut bound = self.range(bound, all);
        if keep == Keep::NotEqual && matches!(step, Step::Add(1 | -1)) {
            // Any fixed bound will do, and this one stands still.
            bound = Interval::exactly(bound.min);
        }
        let counter = Counter { all, step, start };
        Some(counter.ends(keep, bound))
    }

    /// Every value of a local's type, if that is an integer.
    fn integer_range(&self, local: Local) -> Option<Interval> {
        let ty = self.function.local_variables[local].ty;
        match self.module.types[ty].inner {
            TypeInner::Scalar(scalar) => match scalar.kind {
                ScalarKind::Sint => Some(Interval::of_integer(true, scalar.width)),
                ScalarKind::Uint => Some(Interval::of_integer(false, scalar.width)),
                _ => None,
            },
            _ => None,
        }
    }

    /// How the only store to a local changes it, if that store runs on every turn.
    fn step(&self, turn: &Turn<'a>, local: Local, all: Interval) -> Option<Step> {
        let value = turn.straight.iter().find_map(|statement| match **statement {
            Statement::Store { pointer, value } if self.is_local(pointer, local) => Some(value),
            _ => None,
        })?;
        let Expression::Binary { op, left, right } = self.function.expressions[value] else {
            return None;
        };
        // A load from before the loop would be the same value on every turn.
        let fresh = |e: Expr| self.loaded_local(e) == Some(local) && turn.facts.evaluates(e);
        let other = match op {
            BinaryOperator::Add | BinaryOperator::Multiply if fresh(right) => left,
            _ if fresh(left) => right,
            _ => return None,
        };
        if op == BinaryOperator::Add && all.min == 0 && self.is_grid_stride(other) {
            return Some(Step::Stride);
        }
        let by = self.constant(other)?;
        let bits = 128 - (all.max - all.min).leading_zeros();
        let shift = (1..i128::from(bits)).contains(&by);
        match op {
            BinaryOperator::Add if by != 0 => Some(Step::Add(by)),
            BinaryOperator::Subtract if by != 0 => Some(Step::Add(-by)),
            BinaryOperator::Multiply if by >= 2 => Some(Step::Multiply(by)),
            BinaryOperator::Divide if by >= 2 => Some(Step::Divide),
            BinaryOperator::ShiftRight if shift => Some(Step::ShiftRight),
            BinaryOperator::ShiftLeft if shift => Some(Step::Multiply(1 << by)),
            _ => None,
        }
    }

    /// True for `num_workgroups.x * c` with `c` from 1 to the workgroup's extent on that axis. A
    /// launch has at least one workgroup and fewer than 2^32 invocations on an axis, so that this
    /// is never zero, and the same on every turn.
    fn is_grid_stride(&self, expression: Expr) -> bool {
        let Expression::Binary { op: BinaryOperator::Multiply, left, right } =
            self.function.expressions[expression]
        else {
            return false;
        };
        let is_stride = |groups: Expr, by: Expr| {
            self.workgroups_axis(groups).is_some_and(|extent| {
                let by = self.constant(by);
                by.is_some_and(|by| (1..=i128::from(extent)).contains(&by))
            })
        };
        is_stride(left, right) || is_stride(right, left)
    }

    /// The workgroup's extent along the axis whose number of workgroups an expression is.
    fn workgroups_axis(&self, expression: Expr) -> Option<u32> {
        let Expression::AccessIndex { base, index: axis } = self.function.expressions[expression]
        else {
            return None;
        };
        let binding = match self.function.expressions[base] {
            Expression::FunctionArgument(at) => &self.function.arguments[at as usize].binding,
            Expression::AccessIndex { base, index } => {
                let Expression::FunctionArgument(at) = self.function.expressions[base] else {
                    return None;
                };
                let ty = self.function.arguments[at as usize].ty;
                match &self.module.types[ty].inner {
                    TypeInner::Struct { members, .. } => &members[index as usize].binding,
                    _ => return None,
                }
            }
            _ => return None,
        };
        let groups = Binding::BuiltIn(BuiltIn::NumWorkGroups);
        (*binding == Some(groups)).then_some(self.kernel?[axis as usize])
    }

    /// The value of a local on entry to the loop: stored just before it, or its initial value.
    fn start(&self, this: &Loop<'a>, local: Local) -> Option<i128> {
        for statement in this.before.iter().rev() {
            if let Statement::Store { pointer, value } = *statement
                && self.is_local(pointer, local)
            {
                return self.constant(value);
            }
            let mut facts = Facts::default();
            facts.add_statement(self.function, statement);
            if facts.stores(local) > 0 || facts.escapes(local) {
                return None;
            }
        }
        if this.nested {
            return None;
        }
        let mut whole = Facts::default();
        whole.add(self.function, &self.function.body);
        if whole.stores(local) != 1 || whole.escapes(local) {
            return None;
        }
        self.constant(self.function.local_variables[local].init?)
    }

    fn loaded_local(&self, expression: Expr) -> Option<Local> {
        match self.function.expressions[expression] {
            Expression::Load { pointer } => match self.function.expressions[pointer] {
                Expression::LocalVariable(local) => Some(local),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_local(&self, pointer: Expr, local: Local) -> bool {
        matches!(self.function.expressions[pointer], Expression::LocalVariable(it) if it == local)
    }
}

/// The condition under which a comparison of the given outcome keeps the loop going.
fn keep(op: BinaryOperator, outcome: bool) -> Option<Keep> {
    match (op, outcome) {
        (BinaryOperator::Less, true) | (BinaryOperator::GreaterEqual, false) => Some(Keep::Less),
        (BinaryOperator::LessEqual, true) | (BinaryOperator::Greater, false) => {
            Some(Keep::LessEqual)
        }
        (BinaryOperator::Greater, true) | (BinaryOperator::LessEqual, false) => Some(Keep::Greater),
        (BinaryOperator::GreaterEqual, true) | (BinaryOperator::Less, false) => {
            Some(Keep::GreaterEqual)
        }
        (BinaryOperator::NotEqual, true) | (BinaryOperator::Equal, false) => Some(Keep::NotEqual),
        _ => None,
    }
}
