//! Operations on tensors: at once, or as nodes of a graph.

use super::{Repr, Tensor};
use crate::error::{Call, Result};
use crate::graph::node::{Operand, Recorder};
use crate::op::{Op, View};
use crate::stored::Stored;

/// Computes an operation of tensors, of which there is at least one. If one of them is a node of a
/// graph, the operation is recorded there, and other tensors become parameters of the graph.
pub(crate) fn apply(call: Call, op: Op, operands: &[&Tensor]) -> Result<Tensor> {
    let Some(node) = operands.iter().find_map(|it| it.node()) else {
        let stored = operands.iter().map(|it| it.stored(call).map(|it| &**it));
        let stored: Vec<&Stored> = stored.collect::<Result<_>>()?;
        return op.run(call, &stored).map(Tensor::from);
    };
    let operands: Vec<Operand<'_>> = operands.iter().map(|it| it.operand()).collect();
    Recorder::record(&node.recorder, call, op, &operands).map(Tensor::from)
}

impl Tensor {
    /// Returns the tensor as an operand to be recorded.
    pub(crate) fn operand(&self) -> Operand<'_> {
        match &self.0 {
            Repr::Stored(stored) => Operand::Stored(stored),
            Repr::Node(node) => Operand::Node(node),
        }
    }

    /// Returns a view of the tensor.
    pub(crate) fn view(&self, call: Call, view: View) -> Result<Self> {
        apply(call, Op::View(view), &[self])
    }

    /// Runs a function, and names the scope of the graph in its error, if the tensor is a node.
    pub(crate) fn in_scope<T>(&self, function: impl FnOnce() -> Result<T>) -> Result<T> {
        Self::scoped(&[self], function())
    }

    /// Names the scope of the graph in an error, if one of the tensors is a node.
    pub(crate) fn scoped<T>(tensors: &[&Self], result: Result<T>) -> Result<T> {
        result.map_err(|error| match tensors.iter().find_map(|it| it.node()) {
            Some(node) => error.in_scope(&node.recorder.current_scope()),
            None => error,
        })
    }
}
