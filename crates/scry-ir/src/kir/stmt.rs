//! Statements, which are executed in order.

use super::{Label, MatrixPlace, Place, Value, Var};
use crate::Location;

/// Statements, executed one after the other.
pub type Block = Vec<Stmt>;

/// The scope of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Barrier {
    /// The workgroup: orders accesses to workgroup memory and storage buffers.
    Workgroup,
    /// The subgroup: orders the same accesses, between its invocations.
    Subgroup,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Computes a value, including the additional results of its instruction.
    Let(Value),
    /// Assigns a variable.
    Set(Var, Value),
    /// Stores one to four contiguous values.
    Store {
        /// The address of the first value.
        place: Place,
        /// The values, all of the same type.
        values: Vec<Value>,
        /// Source location, if known.
        at: Option<Location>,
    },
    /// Stores a cooperative matrix, which is collective; elements out of bounds are not stored.
    MatrixStore {
        /// The address and layout in memory.
        place: MatrixPlace,
        /// The matrix.
        value: Value,
        /// Source location, if known.
        at: Option<Location>,
    },
    /// A branch.
    If {
        /// A `Bool`.
        condition: Value,
        /// Executed if the condition is true.
        then_block: Block,
        /// Executed if the condition is false.
        else_block: Block,
        /// Source location, if known.
        at: Option<Location>,
    },
    /// Repeats a block until a [`Stmt::Break`] exits the loop.
    Loop {
        /// The label of the loop.
        label: Label,
        /// The loop's body.
        body: Block,
        /// Whether the loop is proven, or claimed by a trusted kernel, to terminate.
        finite: bool,
    },
    /// Executes a block once. A [`Stmt::Break`] may exit the scope before its end.
    Scope {
        /// The label of the scope.
        label: Label,
        /// The scope's body.
        body: Block,
    },
    /// Exits the enclosing loop or scope of this label. Always the last statement of its block.
    Break(Label),
    /// A barrier, and its source location, if known.
    Barrier(Barrier, Option<Location>),
}
