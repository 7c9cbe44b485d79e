//! Exits of loops and scopes.
//!
//! `break` leaves the innermost loop or `switch`. To leave an outer one, a flag is set, and tested
//! after each loop or `switch` in between.

use std::collections::BTreeSet;

use super::Emitter;
use super::levels::{Level, LevelKind};
use crate::kir::Label;

impl Emitter<'_> {
    /// Begins a loop or scope before its first line is written.
    pub(super) fn begin_level(&mut self, label: Label, kind: LevelKind) {
        let mark = self.body.mark();
        self.levels.push(Level { label, kind, mark, pending: BTreeSet::new(), exits: false });
    }

    /// Ends a loop or scope after its last line is written.
    pub(super) fn end_level(&mut self) {
        let Some(Level { label, kind, mark, pending, exits }) = self.levels.pop() else { return };
        if kind == LevelKind::Loop && !exits {
            // A loop without an exit is an error in WGSL.
            self.body.insert((mark.0 + 1, mark.1 + 1), "if false { break; }");
        }
        if self.flags.contains(&label) {
            let clear = format!("{} = false;", self.flag(label));
            self.body.insert(mark, &clear);
        }
        for outer in pending {
            let flag = self.flag(outer);
            let statement = self.exit_statement(outer);
            self.body.line(format!("if {flag} {{ {statement} }}"));
        }
    }

    /// Records that the innermost loop has an exit.
    pub(super) fn mark_loop_exit(&mut self) {
        if let Some(level) = self.levels.iter_mut().rfind(|level| level.kind == LevelKind::Loop) {
            level.exits = true;
        }
    }

    /// Writes the exit from a loop or scope. The label of the kernel ends the invocation.
    pub(super) fn emit_break(&mut self, label: Label) {
        if label == Label::KERNEL {
            self.levels.iter_mut().for_each(|level| level.exits = true);
            self.body.line("return;");
            return;
        }
        if self.direct_exit(label).is_none() {
            self.flags.insert(label);
            let set = format!("{} = true;", self.flag(label));
            self.body.line(set);
        }
        let statement = self.exit_statement(label);
        self.body.line(statement);
    }

    /// Returns the statement that exits the loop or scope of a label. If there is no single one,
    /// returns the `break` of the innermost level: code after that level tests the label's flag.
    fn exit_statement(&mut self, label: Label) -> &'static str {
        let direct = self.direct_exit(label);
        let breakable =
            self.levels.iter_mut().rev().find(|level| level.kind != LevelKind::Continue);
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

    /// Returns the single statement that exits the loop or scope of a label, if there is one.
    fn direct_exit(&self, label: Label) -> Option<&'static str> {
        let at = self.levels.iter().rposition(|level| level.label == label)?;
        let inner = &self.levels[at + 1..];
        match self.levels[at].kind {
            LevelKind::Continue => {
                let is_direct = inner.iter().all(|level| level.kind != LevelKind::Loop);
                is_direct.then_some("continue;")
            }
            LevelKind::Loop | LevelKind::Switch => {
                let is_direct = inner.iter().all(|level| level.kind == LevelKind::Continue);
                is_direct.then_some("break;")
            }
        }
    }
}
