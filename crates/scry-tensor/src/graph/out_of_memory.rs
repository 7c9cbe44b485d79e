//! The error of a plan whose memory does not fit: its arenas, and its largest tensors.

use std::cmp::Reverse;

use scry_gpu::GpuError;

use super::bound_graph::{BoundGraph, BoundNode};
use super::grouped::{Grouped, Origin};
use super::node::Content;
use super::plan::MemoryPlan;
use super::sharded::last_node;
use crate::dtype::DType;
use crate::error::{Call, Error};
use crate::shape::Shape;

/// The number of tensors that the error lists.
const LISTED: usize = 5;

/// A tensor that a plan stores.
#[derive(Clone, Copy)]
struct Tensor<'g> {
    /// The node that recorded it.
    node: &'g BoundNode,
    shape: &'g Shape,
    dtype: DType,
}

impl<'g> Tensor<'g> {
    fn new(node: &'g BoundNode) -> Self {
        Self { node, shape: &node.shape, dtype: node.dtype }
    }

    /// Returns the operation, the type, the shape, the scope and the size, on one line.
    fn describe(self, bytes: usize) -> String {
        let Self { node, shape, dtype } = self;
        let scope = if node.scope.is_empty() { "" } else { ", in " };
        format!("{} ({dtype} {shape}, {bytes} bytes{scope}{})", node.call.op, node.scope)
    }
}

/// Returns an error of the device with the arenas of a plan and its largest tensors.
pub(super) fn out_of_memory(
    call: Call,
    error: GpuError,
    graph: &BoundGraph,
    grouped: &Grouped,
    memory: &MemoryPlan,
) -> Error {
    let tensors = tensors(graph, grouped);
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|n| Reverse(grouped.buffers[*n].bytes));
    let listed = order.iter().filter_map(|n| Some((tensors[*n]?, grouped.buffers[*n].bytes)));
    let listed: Vec<_> = listed.take(LISTED).map(|(it, bytes)| it.describe(bytes)).collect();
    call.gpu(error).when(&format!(
        "; the plan needs arenas of {:?} bytes, of which {} are in use at one time; its largest \
         tensors: {}",
        memory.arenas,
        memory.peak,
        listed.join(", ")
    ))
}

/// Returns the tensor in each buffer.
fn tensors<'g>(graph: &'g BoundGraph, grouped: &Grouped) -> Vec<Option<Tensor<'g>>> {
    let leaf = |content: Content| graph.nodes.iter().find(|node| node.content == content);
    let leaves = grouped.buffers.iter().map(|info| match info.origin {
        Origin::Input(n) => leaf(Content::Input(n)).map(Tensor::new),
        Origin::Param(n) => leaf(Content::Param(n)).map(Tensor::new),
        Origin::State(n) => leaf(Content::State(n)).map(Tensor::new),
        Origin::Result | Origin::Constant | Origin::Output => None,
    });
    let mut tensors: Vec<_> = leaves.collect();
    for kernel in &grouped.kernels {
        let (last, values) = (last_node(graph, kernel), kernel.values());
        for (n, buffer) in kernel.results().into_iter().enumerate() {
            let stored = values.get(n).copied().flatten();
            let node = stored.map_or(last, |(node, _)| &graph.nodes[node.index()]);
            let mut tensor = Tensor::new(node);
            // The outputs of a custom kernel have shapes and types of their own.
            if let Some((shape, dtype)) = node.results.get(n) {
                (tensor.shape, tensor.dtype) = (shape, *dtype);
            }
            tensors[buffer.index()].get_or_insert(tensor);
        }
    }
    tensors
}
