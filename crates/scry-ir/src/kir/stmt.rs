//! Statements: what happens in which order.

use super::inst::visit_any;
use super::{Label, Place, Value, Var};

/// Statements, executed one after the other.
pub type Block = Vec<Stmt>;

/// What a barrier orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Barrier {
    /// All invocations of the workgroup: workgroup memory and storage.
    Workgroup,
    /// All invocations of the subgroup.
    Subgroup,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Computes a value; a load of several values computes the following ones too.
    Let(Value),
    /// Assigns a variable.
    Set(Var, Value),
    /// Writes one to four values that lie one after the other.
    Store {
        /// Where the first goes.
        place: Place,
        /// What is written; all of one type.
        values: Vec<Value>,
    },
    /// One of two blocks.
    If {
        /// A `Bool`.
        condition: Value,
        /// Executed if it holds.
        accept: Block,
        /// Executed if it does not.
        reject: Block,
    },
    /// Repeats a block until it is left.
    Loop {
        /// Name of the loop.
        label: Label,
        /// What is repeated.
        body: Block,
        /// Whether the loop is proven to end.
        finite: bool,
    },
    /// Executes a block once; it can be left before its end.
    Scope {
        /// Name of the scope.
        label: Label,
        /// What is executed.
        body: Block,
    },
    /// Goes on after the loop or scope of this name, which encloses the statement. Always the last
    /// statement of its block.
    Leave(Label),
    /// Waits for the others.
    Barrier(Barrier),
}

/// Up to two blocks.
struct Blocks<T>(Option<T>, Option<T>);

impl<T> Iterator for Blocks<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.take().or_else(|| self.1.take())
    }
}

impl Stmt {
    /// The blocks within the statement, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        match self {
            Self::If { accept, reject, .. } => Blocks(Some(accept), Some(reject)),
            Self::Loop { body, .. } | Self::Scope { body, .. } => Blocks(Some(body), None),
            _ => Blocks(None, None),
        }
    }

    /// The blocks within the statement, in order, to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        match self {
            Self::If { accept, reject, .. } => Blocks(Some(accept), Some(reject)),
            Self::Loop { body, .. } | Self::Scope { body, .. } => Blocks(Some(body), None),
            _ => Blocks(None, None),
        }
    }

    /// Calls `visit` with each value that the statement itself uses, not those within its blocks.
    /// The operands of a value's instruction are that instruction's.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Value)) {
        match self {
            Self::Set(_, value) | Self::If { condition: value, .. } => visit(*value),
            Self::Store { place, values } => {
                if let Some(index) = place.index {
                    visit(index);
                }
                for value in values {
                    visit(*value);
                }
            }
            Self::Let(_)
            | Self::Loop { .. }
            | Self::Scope { .. }
            | Self::Leave(_)
            | Self::Barrier(_) => {}
        }
    }

    /// Calls `visit` with each value that the statement itself uses, which it may replace.
    pub fn for_each_operand_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        match self {
            Self::Set(_, value) | Self::If { condition: value, .. } => visit(value),
            Self::Store { place, values } => {
                visit_any(&mut place.index, &mut visit);
                for value in values {
                    visit(value);
                }
            }
            Self::Let(_)
            | Self::Loop { .. }
            | Self::Scope { .. }
            | Self::Leave(_)
            | Self::Barrier(_) => {}
        }
    }
}
