//! Statements, which are executed in order.

use super::{Label, Place, Value, Var};

/// Statements, executed one after the other.
pub type Block = Vec<Stmt>;

/// The memory that a barrier orders.
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
    /// Stores one to four contiguous values.
    Store {
        /// Where the first goes.
        place: Place,
        /// The values; all of one type.
        values: Vec<Value>,
    },
    /// One of two blocks.
    If {
        /// A `Bool`.
        condition: Value,
        /// Executed if it holds.
        then_block: Block,
        /// Executed if it does not.
        else_block: Block,
    },
    /// Repeats a block until an exit.
    Loop {
        /// Name of the loop.
        label: Label,
        /// The loop's body.
        body: Block,
        /// Whether the loop is proven to end.
        finite: bool,
    },
    /// Executes a block once; it can be left before its end.
    Scope {
        /// Name of the scope.
        label: Label,
        /// The scope's body.
        body: Block,
    },
    /// Exits the enclosing loop or scope of this label. Always the last statement of its block.
    Leave(Label),
    /// Waits for the others.
    Barrier(Barrier),
}
