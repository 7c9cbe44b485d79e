//! Loops and scopes around a statement.

use std::collections::BTreeSet;

use crate::kir::Label;

/// The statement that a loop or scope becomes, which determines how it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelKind {
    /// A `loop`, left by `break`.
    Loop,
    /// A scope that becomes a `switch` with one clause, left by `break`.
    Switch,
    /// A scope that becomes the part of a loop body before `continuing`, left by `continue`.
    Continue,
}

/// A loop or scope around the statement being written.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) label: Label,
    pub(super) kind: LevelKind,
    /// The position in the text before it, where its flag, if there is one, is cleared.
    pub(super) mark: (usize, usize),
    /// Outer labels whose flags must be tested after it.
    pub(super) pending: BTreeSet<Label>,
    /// Whether a `break` or `return` may end it.
    pub(super) exits: bool,
}
