//! Loops and scopes around a statement.

use std::collections::BTreeSet;

use crate::kir::Label;

/// How a label is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A `loop`.
    Loop,
    /// A scope as a `switch` of one clause.
    Switch,
    /// A scope that a loop's `continuing` follows.
    Continue,
}

/// A loop or scope around the statement being written.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) label: Label,
    pub(super) kind: Kind,
    /// Where the flag is cleared, if there is one.
    pub(super) mark: (usize, usize),
    /// Outer labels whose flags may be set at the end.
    pub(super) pending: BTreeSet<Label>,
    /// Whether a `break` or `return` is within.
    pub(super) exits: bool,
}
