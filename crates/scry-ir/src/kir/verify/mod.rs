//! The IR verifier. It finds bugs in front ends and passes, not errors of users.
//!
//! This file traverses the statements and checks their context; `types` checks single instructions,
//! and `memory` accesses to memory.

mod memory;
mod types;

#[cfg(test)]
mod tests;

use super::print::Line;
use super::{Block, Inst, Kir, Label, Stmt, Type, Value, Var};

/// The result of a check, with an error message.
type Check = Result<(), String>;

/// Checks a kernel.
///
/// # Errors
/// The first invalid statement, as printed, and the rule that it breaks.
pub fn verify(kir: &Kir) -> Result<(), String> {
    head(kir).map_err(|e| format!("kernel {}: {e}", kir.name))?;
    let mut walk = Walk {
        kir,
        computed: vec![false; kir.values.len()],
        visible: vec![false; kir.values.len()],
        trail: Vec::new(),
        used: vec![false; kir.labels as usize],
        open: Vec::new(),
    };
    walk.block(&kir.body, Kind::Plain)
}

/// Checks the declarations.
fn head(kir: &Kir) -> Check {
    if kir.workgroup_size.contains(&0) {
        return Err(format!("the workgroup size is {:?}", kir.workgroup_size));
    }
    if kir.labels == 0 {
        return Err("the kernel's own label is not counted".to_owned());
    }
    if let Some(buffer) = kir.buffers.iter().find(|buffer| buffer.element == Type::Bool) {
        return Err(format!("the elements of `{}` are bool, which no buffer has", buffer.name));
    }
    match kir.workgroup.iter().chain(&kir.locals).any(|array| array.len == 0) {
        true => Err("there is an array of length zero".to_owned()),
        false => Ok(()),
    }
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
    used: Vec<bool>,
    /// The open blocks, the outermost first.
    open: Vec<Open>,
}

/// A block being checked.
struct Open {
    kind: Kind,
    /// Length of the trail at the beginning.
    start: usize,
    /// For the body of a scope with exits: length of the trail that remains visible after it.
    keep: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The kernel's body, or a branch.
    Plain,
    Loop(Label),
    Scope(Label),
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, kind: Kind) -> Check {
        self.open.push(Open { kind, start: self.trail.len(), keep: usize::MAX });
        for (nth, stmt) in block.iter().enumerate() {
            let last = nth + 1 == block.len();
            self.stmt(stmt, last)
                .map_err(|e| format!("`{}`: {e}", Line { kir: self.kir, stmt }))?;
            self.inside(stmt)?;
        }
        let open = self.open.pop().expect("the block was pushed above");
        let keep = if matches!(kind, Kind::Scope(_)) { open.keep } else { open.start };
        self.trail.drain(keep.min(self.trail.len())..).for_each(|value| {
            self.visible[value.index()] = false;
        });
        Ok(())
    }

    fn inside(&mut self, stmt: &Stmt) -> Check {
        let kind = match stmt {
            Stmt::Loop { label, .. } => Kind::Loop(*label),
            Stmt::Scope { label, .. } => Kind::Scope(*label),
            _ => Kind::Plain,
        };
        stmt.blocks().try_for_each(|block| self.block(block, kind))
    }

    /// Checks a statement without its nested blocks.
    fn stmt(&mut self, stmt: &Stmt, last: bool) -> Check {
        self.all_usable(|visit| stmt.for_each_operand(visit))?;
        match stmt {
            Stmt::Let(value) => self.compute(*value),
            Stmt::Set(var, value) => {
                let (ty, value) = (var_type(self.kir, *var)?, self.kir.ty(*value));
                same(value, ty, &format!("{var}"))
            }
            Stmt::Store { place, values } => memory::store(self.kir, place, values),
            Stmt::If { condition, .. } => {
                same(self.kir.ty(*condition), Type::Bool, "the condition")
            }
            Stmt::Loop { label, .. } | Stmt::Scope { label, .. } => self.name(*label),
            Stmt::Leave(_) if !last => Err("statements follow in the block".to_owned()),
            Stmt::Leave(label) => self.leave(*label),
            Stmt::Barrier(_) => Ok(()),
        }
    }

    fn all_usable(&self, operands: impl FnOnce(&mut dyn FnMut(Value))) -> Check {
        let mut result = Ok(());
        operands(&mut |value| {
            if result.is_ok() {
                result = self.usable(value);
            }
        });
        result
    }

    fn usable(&self, value: Value) -> Check {
        match self.visible.get(value.index()) {
            None => Err(format!("{value} has no definition")),
            Some(true) => Ok(()),
            Some(false) if self.computed[value.index()] => {
                Err(format!("{value} is not visible here"))
            }
            Some(false) => Err(format!("{value} is not computed before")),
        }
    }

    fn compute(&mut self, value: Value) -> Check {
        let Some(definition) = self.kir.values.get(value.index()) else {
            return Err(format!("{value} has no definition"));
        };
        self.all_usable(|visit| definition.inst.for_each_operand(visit))?;
        types::check(self.kir, definition)?;
        if let Inst::Extra(first, _) = definition.inst {
            return Err(format!("{first} computes it already"));
        }
        let count = definition.inst.results();
        self.extras(value, count)?;
        (value.0..value.0 + count).try_for_each(|value| self.show(Value(value)))
    }

    /// Checks that an instruction's additional results are defined.
    fn extras(&self, first: Value, count: u32) -> Check {
        for nth in 1..count {
            let extra = Value(first.0 + nth);
            let found = self.kir.values.get(extra.index());
            if found.is_none_or(|found| found.inst != Inst::Extra(first, nth as u8)) {
                return Err(format!("{extra} is not `extra {nth} of {first}`"));
            }
            same(self.kir.ty(extra), self.kir.ty(first), &format!("{extra}"))?;
        }
        Ok(())
    }

    fn show(&mut self, value: Value) -> Check {
        if self.computed[value.index()] {
            return Err(format!("{value} is computed twice"));
        }
        self.computed[value.index()] = true;
        self.visible[value.index()] = true;
        self.trail.push(value);
        Ok(())
    }

    fn name(&mut self, label: Label) -> Check {
        match self.used.get_mut(label.0 as usize) {
            _ if label == Label::KERNEL => Err(format!("{label} is the kernel's own label")),
            None => Err(format!("{label} is not below {}, the number of labels", self.kir.labels)),
            Some(true) => Err(format!("{label} is the label of another statement")),
            Some(used) => {
                *used = true;
                Ok(())
            }
        }
    }

    fn leave(&mut self, label: Label) -> Check {
        if label == Label::KERNEL {
            return Ok(());
        }
        // The length of the trail that remains visible at the end of each enclosing block,
        // innermost first.
        let mut keep = self.trail.len();
        for open in self.open.iter_mut().rev() {
            if open.kind == Kind::Loop(label) || open.kind == Kind::Scope(label) {
                open.keep = open.keep.min(keep);
                return Ok(());
            }
            let scope = matches!(open.kind, Kind::Scope(_));
            keep = if scope { keep.min(open.keep) } else { open.start };
        }
        Err(format!("{label} is not around the statement"))
    }
}

fn var_type(kir: &Kir, var: Var) -> Result<Type, String> {
    kir.vars.get(var.index()).copied().ok_or_else(|| format!("there is no variable {var}"))
}

/// Checks that types are equal.
fn same(found: Type, expected: Type, what: &str) -> Check {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} takes {expected}, and gets {found}"))
}
