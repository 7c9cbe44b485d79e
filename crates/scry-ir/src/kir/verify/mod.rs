//! The IR verifier: the rules that passes and backends rely on.
//!
//! This file traverses the statements, and checks labels and that values are visible where they are
//! used; `declarations` checks what precedes the statements, `types` single instructions, and
//! `memory` accesses to memory.

mod declarations;
mod error;
mod memory;
mod types;

#[cfg(test)]
mod tests;

use std::slice;

use self::error::{Violation, abbreviated, require_same_type, violation};
use super::print::Line;
use super::{Inst, Kir, Label, Stmt, Type, Value, Var};

pub use self::error::{VerifyError, VerifyErrorKind};

/// The result of a check.
type Check = Result<(), Violation>;

/// Maximum nesting of blocks: the 1000 that lowering allows for statements, and those that it adds
/// within one statement.
pub(super) const MAX_NESTING: usize = 1200;

/// Maximum of [`Kir::labels`]: passes and backends have tables of labels.
const MAX_LABELS: u32 = 1 << 22;

/// Maximum invocations of a workgroup along one axis, so that the product of three fits in 64 bits.
const MAX_WORKGROUP_AXIS: u32 = 1 << 16;

/// Checks the rules of KIR. [`optimise`](super::optimise) and the backends require a valid kernel:
/// otherwise they may panic or generate wrong code. `optimise` keeps it valid.
///
/// Checked are the declarations; that each value is computed once and visible where it is used;
/// types; accesses (alignment, permissions, element types of arrays, constant indices); labels and
/// exits; and the nesting of blocks. Not checked is what depends on the execution: whether an index
/// is in bounds, barriers are reached by all invocations of a workgroup, and loops that are marked
/// as finite terminate.
///
/// Any kernel is checked without a panic, in time proportional to its size.
///
/// ```
/// use scry_ir::kir::{BinaryOp, Builder, Const, VerifyErrorKind, verify};
///
/// let mut b = Builder::new("example", [64, 1, 1]);
/// let (one, half) = (b.u32(1), b.constant(Const::f32(0.5)));
/// assert_eq!(verify(b.kir()), Ok(()));
/// b.binary(BinaryOp::Add, one, half);
/// let error = verify(&b.finish()).expect_err("the operands have different types");
/// assert_eq!(error.kind, VerifyErrorKind::Type);
/// assert_eq!(error.statement.as_deref(), Some("%2: u32 = add %0, %1"));
/// ```
///
/// # Errors
/// The first declaration, statement or unused definition that breaks a rule.
pub fn verify(kir: &Kir) -> Result<(), VerifyError> {
    declarations::check(kir).map_err(|violation| violation.in_declaration(&kir.name))?;
    let mut walk = Walk {
        kir,
        computed: vec![false; kir.values.len()],
        visible: vec![false; kir.values.len()],
        trail: Vec::new(),
        used_labels: vec![false; kir.labels as usize],
        open: Vec::new(),
    };
    walk.body()?;
    for (index, definition) in kir.values.iter().enumerate() {
        if !walk.computed[index] {
            let stmt = Stmt::Let(Value(index as u32));
            declarations::check_unused(kir, definition)
                .map_err(|violation| error_at(kir, &stmt, None, violation))?;
        }
    }
    Ok(())
}

fn error_at(kir: &Kir, stmt: &Stmt, position: Option<usize>, violation: Violation) -> VerifyError {
    let computed = if let Stmt::Let(value) = stmt { Some(*value) } else { None };
    let error = violation.in_statement(&kir.name, position, &Line { kir, stmt }, computed);
    let value_location = || error.value.and_then(|value| kir.source.value(value));
    let location = kir.position(stmt).or_else(value_location);
    let source = kir.source.name.clone().map(|name| abbreviated(&name));
    VerifyError { location, source, ..error }
}

struct Walk<'a> {
    kir: &'a Kir,
    /// For each value, whether a statement so far computes it.
    computed: Vec<bool>,
    /// For each value, whether it can be used here.
    visible: Vec<bool>,
    /// The values that can be used here, those of outer blocks first.
    trail: Vec<Value>,
    /// For each label, whether a loop or scope so far has used it.
    used_labels: Vec<bool>,
    /// The open blocks, the outermost first. An else block is opened before its then block, which
    /// is checked first, and so appears to enclose it. That has no effect: no value is computed in
    /// the else block yet, and it has no label.
    open: Vec<Open<'a>>,
}

/// A block being checked.
struct Open<'a> {
    kind: Kind,
    /// The statements that follow.
    rest: slice::Iter<'a, Stmt>,
    /// Number of blocks around this one.
    depth: usize,
    /// Length of the trail when the block was opened.
    start: usize,
    /// For the body of a scope: length of the trail that remains visible after the scope, which its
    /// exits reduce.
    visible_after: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The kernel's body, or a branch.
    Plain,
    Loop(Label),
    Scope(Label),
}

impl<'a> Walk<'a> {
    /// Checks all statements. Open blocks are in a list instead of recursion: no nesting exhausts
    /// the stack.
    fn body(&mut self) -> Result<(), VerifyError> {
        self.open_block(&self.kir.body, Kind::Plain, 0);
        let mut position = 0;
        while let Some(block) = self.open.last_mut() {
            let Some(stmt) = block.rest.next() else {
                self.close_block();
                continue;
            };
            let (is_last, depth) = (block.rest.len() == 0, block.depth + 1);
            self.stmt(stmt, is_last)
                .and_then(|()| self.open_blocks(stmt, depth))
                .map_err(|violation| error_at(self.kir, stmt, Some(position), violation))?;
            position += 1;
        }
        Ok(())
    }

    /// Opens the blocks of a statement, the first one last, so that it is checked next.
    fn open_blocks(&mut self, stmt: &'a Stmt, depth: usize) -> Check {
        let kind = match stmt {
            Stmt::Loop { label, .. } => Kind::Loop(*label),
            Stmt::Scope { label, .. } => Kind::Scope(*label),
            _ => Kind::Plain,
        };
        let mut blocks = stmt.blocks();
        let (first, second) = (blocks.next(), blocks.next());
        if first.is_some() && depth > MAX_NESTING {
            let message = format!("blocks are nested more than {MAX_NESTING} deep");
            return Err(violation(VerifyErrorKind::TooLarge, message));
        }
        [second, first].into_iter().flatten().for_each(|block| self.open_block(block, kind, depth));
        Ok(())
    }

    fn open_block(&mut self, block: &'a [Stmt], kind: Kind, depth: usize) {
        let (rest, start) = (block.iter(), self.trail.len());
        self.open.push(Open { kind, rest, depth, start, visible_after: usize::MAX });
    }

    /// Closes the innermost block: its values become invisible, except those of a scope that
    /// precede the scope's exits.
    fn close_block(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let is_scope = matches!(open.kind, Kind::Scope(_));
        let visible_after = if is_scope { open.visible_after } else { open.start };
        self.trail.drain(visible_after.min(self.trail.len())..).for_each(|value| {
            self.visible[value.index()] = false;
        });
    }

    /// Checks a statement without its nested blocks.
    fn stmt(&mut self, stmt: &Stmt, is_last: bool) -> Check {
        self.check_all_usable(|visit| stmt.for_each_operand(visit))?;
        match stmt {
            Stmt::Let(value) => self.compute(*value),
            Stmt::Set(var, value) => {
                let (ty, value) = (var_type(self.kir, *var)?, self.kir.ty(*value));
                require_same_type(value, ty, &format!("the value of {var}"))
            }
            Stmt::Store { place, values, .. } => memory::store(self.kir, place, values),
            Stmt::MatrixStore { place, value, .. } => {
                memory::matrix_store(self.kir, place, self.kir.ty(*value))
            }
            Stmt::If { condition, .. } => {
                require_same_type(self.kir.ty(*condition), Type::Bool, "the condition")
            }
            Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => self.declare_label(*label),
            Stmt::Break(_) if !is_last => {
                Err(violation(VerifyErrorKind::Control, "statements follow in the block"))
            }
            Stmt::Break(label) => self.check_break(*label),
            Stmt::Barrier(..) => Ok(()),
        }
    }

    fn check_all_usable(&self, operands: impl FnOnce(&mut dyn FnMut(Value))) -> Check {
        let mut result = Ok(());
        operands(&mut |value| {
            if result.is_ok() {
                result = self.check_usable(value);
            }
        });
        result
    }

    fn check_usable(&self, value: Value) -> Check {
        exists(self.kir, value)?;
        let message = match (self.visible[value.index()], self.computed[value.index()]) {
            (true, _) => return Ok(()),
            (false, true) => format!("{value} is not visible here"),
            (false, false) => format!("{value} is not computed before"),
        };
        Err(violation(VerifyErrorKind::Value, message).with_value(value))
    }

    /// Checks a statement that computes a value.
    fn compute(&mut self, value: Value) -> Check {
        exists(self.kir, value)?;
        let definition = &self.kir.values[value.index()];
        self.check_all_usable(|visit| definition.inst.for_each_operand(visit))?;
        types::check(self.kir, definition)?;
        if let Inst::Extra(first, _) = definition.inst {
            let message = format!("{first} computes it already");
            return Err(violation(VerifyErrorKind::Value, message));
        }
        let count = definition.inst.results();
        self.check_extras(value, count)?;
        (0..count).try_for_each(|nth| self.make_visible(Value(value.0 + nth)))
    }

    /// Checks that an instruction's additional results are defined.
    fn check_extras(&self, first: Value, count: u32) -> Check {
        for nth in 1..count {
            let extra = Value(first.0.saturating_add(nth));
            let found = self.kir.values.get(extra.index());
            let expected = Inst::Extra(first, nth as u8);
            let Some(found) = found.filter(|found| found.inst == expected) else {
                let message = format!("{extra} is not `extra {nth} of {first}`");
                return Err(violation(VerifyErrorKind::Value, message));
            };
            require_same_type(found.ty, self.kir.ty(first), &format!("{extra}"))?;
        }
        Ok(())
    }

    fn make_visible(&mut self, value: Value) -> Check {
        if self.computed[value.index()] {
            let message = format!("{value} is computed twice");
            return Err(violation(VerifyErrorKind::Value, message).with_value(value));
        }
        self.computed[value.index()] = true;
        self.visible[value.index()] = true;
        self.trail.push(value);
        Ok(())
    }

    /// Checks the label of a loop or scope.
    fn declare_label(&mut self, label: Label) -> Check {
        let message = match self.used_labels.get_mut(label.0 as usize) {
            _ if label == Label::KERNEL => format!("{label} is the kernel's own label"),
            None => format!("{label} is not below {}, the number of labels", self.kir.labels),
            Some(true) => format!("{label} is the label of another statement"),
            Some(used) => {
                *used = true;
                return Ok(());
            }
        };
        Err(violation(VerifyErrorKind::Control, message))
    }

    /// Checks an exit, and records which values remain visible after the scope that it exits.
    fn check_break(&mut self, label: Label) -> Check {
        if label == Label::KERNEL {
            return Ok(());
        }
        // The length of the trail that remains visible at the end of each enclosing block,
        // innermost first.
        let mut visible = self.trail.len();
        for open in self.open.iter_mut().rev() {
            if open.kind == Kind::Loop(label) || open.kind == Kind::Scope(label) {
                open.visible_after = open.visible_after.min(visible);
                return Ok(());
            }
            let is_scope = matches!(open.kind, Kind::Scope(_));
            visible = if is_scope { visible.min(open.visible_after) } else { open.start };
        }
        let message = format!("no enclosing loop or scope has label {label}");
        Err(violation(VerifyErrorKind::Control, message))
    }
}

/// Requires that a value has a definition.
fn exists(kir: &Kir, value: Value) -> Check {
    if value.index() < kir.values.len() {
        return Ok(());
    }
    Err(violation(VerifyErrorKind::Value, format!("{value} has no definition")).with_value(value))
}

fn var_type(kir: &Kir, var: Var) -> Result<Type, Violation> {
    let ty = kir.vars.get(var.index()).copied();
    ty.ok_or_else(|| violation(VerifyErrorKind::Value, format!("variable {var} is not declared")))
}
