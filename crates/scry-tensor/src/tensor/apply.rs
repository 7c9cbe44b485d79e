//! Operations on tensors: eager, or as nodes of a graph.

use scry_gpu::Features;

use super::{Repr, Tensor};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::graph::node::{Operand, Recorder};
use crate::op::{Op, View};
use crate::stored::Stored;

/// Computes an operation of tensors, of which there is at least one. If one of them is a node of a
/// graph, the operation is recorded there, and other tensors become parameters of the graph.
pub(crate) fn apply(call: Call, op: Op, operands: &[&Tensor]) -> Result<Tensor> {
    if matches!(op, Op::Library(_)) && operands.iter().any(|it| it.library_lacks(it.dtype())) {
        return apply_in_f32(call, op, operands);
    }
    let Some(node) = operands.iter().find_map(|it| it.node()) else {
        let stored = operands.iter().map(|it| it.stored(call).map(|it| &**it));
        let stored: Vec<&Stored> = stored.collect::<Result<_>>()?;
        return op.run(call, &stored).map(Tensor::from);
    };
    let operands: Vec<Operand<'_>> = operands.iter().map(|it| it.operand()).collect();
    Recorder::record(&node.recorder, call, op, &operands).map(Tensor::from)
}

/// Applies an operation to operands of which some are converted to `f32`, since kernels of the
/// library cannot store their type on the device. Such kernels compute in `f32` anyway, and round
/// the result once.
fn apply_in_f32(call: Call, op: Op, operands: &[&Tensor]) -> Result<Tensor> {
    let result = op.dtype(operands[0].dtype());
    let converted = |it: &&Tensor| match it.library_lacks(it.dtype()) {
        true => it.cast_for(call, DType::F32),
        false => Ok(Tensor::clone(it)),
    };
    let converted = operands.iter().map(converted).collect::<Result<Vec<_>>>()?;
    let found = apply(call, op, &converted.iter().collect::<Vec<_>>())?;
    if found.dtype() == result { Ok(found) } else { found.cast_for(call, result) }
}

impl Tensor {
    /// Returns whether kernels of the library cannot store a type on the device: 16-bit floats.
    pub(crate) fn library_lacks(&self, dtype: DType) -> bool {
        let features = || self.runtime().device().info().features;
        match dtype {
            DType::F16 => !features().contains(Features::F16),
            DType::BF16 => !features().contains(Features::I16),
            _ => false,
        }
    }

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
        Self::in_scope_of(&[self], function)
    }

    /// Runs a function, and names the scope of the graph in its error, if one of the tensors is a
    /// node.
    pub(crate) fn in_scope_of<T>(
        tensors: &[&Self],
        function: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        Self::scoped(tensors, function())
    }

    /// Names the scope of the graph in an error, if one of the tensors is a node.
    pub(crate) fn scoped<T>(tensors: &[&Self], result: Result<T>) -> Result<T> {
        result.map_err(|error| match tensors.iter().find_map(|it| it.node()) {
            Some(node) => error.in_scope(&node.recorder.current_scope()),
            None => error,
        })
    }
}
