//! Exits of loops and scopes.
//!
//! `break` leaves the innermost loop or `switch`. To leave an outer one, a flag is set that is
//! looked at after each one in between.

use std::collections::BTreeSet;

use super::Emitter;
use super::levels::{Kind, Level};
use crate::kir::Label;

impl Emitter<'_> {
    /// Begins a loop or scope before its first line is written.
    pub(super) fn enter(&mut self, label: Label, kind: Kind) {
        let mark = self.body.mark();
        self.levels.push(Level { label, kind, mark, pending: BTreeSet::new(), exits: false });
    }

    /// Ends a loop or scope after its last line is written.
    pub(super) fn exit(&mut self) {
        let Some(Level { label, kind, mark, pending, exits }) = self.levels.pop() else { return };
        if kind == Kind::Loop && !exits {
            // WGSL refuses a loop that nothing can end.
            self.body.insert((mark.0 + 1, mark.1 + 1), "if false { break; }");
        }
        if self.flags.contains(&label) {
            let clear = format!("{} = false;", self.flag(label));
            self.body.insert(mark, &clear);
        }
        for outer in pending {
            let flag = self.flag(outer);
            let statement = self.leave_by(outer);
            self.body.line(format!("if {flag} {{ {statement} }}"));
        }
    }

    /// Notes that the innermost loop ends.
    pub(super) fn ends(&mut self) {
        if let Some(level) = self.levels.iter_mut().rfind(|level| level.kind == Kind::Loop) {
            level.exits = true;
        }
    }

    /// Leaves a loop or scope; the kernel's own label ends the invocation.
    pub(super) fn leave(&mut self, label: Label) {
        if label == Label::KERNEL {
            self.levels.iter_mut().for_each(|level| level.exits = true);
            self.body.line("return;");
            return;
        }
        if self.direct(label).is_none() {
            self.flags.insert(label);
            let set = format!("{} = true;", self.flag(label));
            self.body.line(set);
        }
        let statement = self.leave_by(label);
        self.body.line(statement);
    }

    /// Returns the statement that leaves a label, or the innermost level on the way to it.
    fn leave_by(&mut self, label: Label) -> &'static str {
        let direct = self.direct(label);
        let breakable = self.levels.iter_mut().rev().find(|level| level.kind != Kind::Continue);
        if direct != Some("continue;")
            && let Some(level) = breakable
        {
            level.exits = true;
            if direct.is_none() {
                level.pending.insert(label);
            }
        }
        direct.unwrap_or("break;")
    }

    /// Returns the statement that leaves a label, if there is one.
    fn direct(&self, label: Label) -> Option<&'static str> {
        let at = self.levels.iter().rposition(|level| level.label == label)?;
        let inner = &self.levels[at + 1..];
        match self.levels[at].kind {
            Kind::Continue => {
                let free = inner.iter().all(|level| level.kind != Kind::Loop);
                free.then_some("continue;")
            }
            Kind::Loop | Kind::Switch => {
                let free = inner.iter().all(|level| level.kind == Kind::Continue);
                free.then_some("break;")
            }
        }
    }
}
