//! What a plan is compared with: the operations that were recorded, one by one.

use std::collections::HashMap;
use std::sync::Arc;

use scry_gpu::UntypedBuffer;

use super::bound_graph::{BoundGraph, BoundNode};
use super::compiled::Plan;
use super::node::{Content, NodeId, Write};
use super::row_reference::{RowOrder, RowOrders};
use super::state_regions;
use crate::error::{Call, Result};
use crate::op::{Library, Op, View};
use crate::runtime::Runtime;
use crate::shape::Layout;
use crate::stored::{Stored, stored_word};
use crate::waiting::Waiting;

/// The outputs of custom kernels, by their nodes.
pub(super) type Outputs = HashMap<NodeId, Vec<Stored>>;

/// Values of nodes as a plan computes them, with which the nodes after them continue.
pub(super) type Replaced = HashMap<NodeId, Stored>;

impl Plan {
    /// Computes all nodes one by one, and all outputs of custom kernels. Reductions that
    /// row kernels compute have the order of these. Other nodes continue with the values in
    /// `replaced`, which become those that are computed.
    pub(super) async fn one_by_one(
        &self,
        graph: &BoundGraph,
        (inputs, states): (&[Arc<Stored>], &[UntypedBuffer]),
        orders: &RowOrders,
        replaced: &mut Replaced,
        waiting: Waiting,
    ) -> Result<(Vec<Stored>, Outputs)> {
        let shared = self.shared();
        let mut parts = Outputs::new();
        let mut values: Vec<Stored> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let id = NodeId(values.len() as u32);
            let mut value = match &node.content {
                Content::Input(n) => (*inputs[*n]).clone(),
                Content::Param(n) => (*shared.graph.params[*n].1).clone(),
                Content::State(n) => self.whole(&shared.graph.states[*n], states[*n].clone()),
                Content::Part(n) => parts[&node.sources[0]][*n].clone(),
                Content::Const(..) | Content::Op(_) | Content::Write(_) | Content::Kernel(_) => {
                    let sources = node.sources.iter().map(|it| values[it.index()].clone());
                    let single = Single {
                        runtime: shared.runtime.clone(),
                        node: node.clone(),
                        sources: sources.collect(),
                        order: orders.get(&id).copied(),
                    };
                    let run = move || single.run();
                    let results = waiting.compile(node.call, self.device(), run).await?;
                    let first = results[0].clone();
                    if matches!(node.content, Content::Kernel(_)) {
                        parts.insert(id, results);
                    }
                    first
                }
            };
            if let Some(replaced) = replaced.get_mut(&id) {
                std::mem::swap(replaced, &mut value);
            }
            values.push(value);
        }
        Ok((values, parts))
    }
}

/// One node with the values that it is computed from.
struct Single {
    runtime: Arc<Runtime>,
    node: BoundNode,
    sources: Vec<Stored>,
    /// The order of a reduction that a row kernel computes.
    order: Option<RowOrder>,
}

impl Single {
    /// Computes the node's outputs.
    fn run(&self) -> Result<Vec<Stored>> {
        let Self { runtime, node, .. } = self;
        let BoundNode { call, shape, .. } = node;
        let sources: Vec<&Stored> = self.sources.iter().collect();
        let value = match &node.content {
            Content::Const(_, dtype, bits) => {
                let word = stored_word(*dtype, *bits);
                Stored::repeated(*call, runtime, shape.clone(), *dtype, word)
            }
            Content::Op(op) => match (op, self.order) {
                (Op::Library(Library::Reduce(reduce)), Some(order)) => {
                    order.reduce(*call, reduce, sources[0], shape)
                }
                _ => op.run(*call, &sources),
            },
            Content::Write(write) => written(*call, write, &sources),
            _ => return outputs(*call, runtime, node, &sources),
        };
        Ok(vec![value.map_err(|error| error.in_scope(&node.scope))?])
    }
}

/// Returns a state after a write, in a buffer of its own.
fn written(call: Call, write: &Write, sources: &[&Stored]) -> Result<Stored> {
    let (state, new) = (sources[0], sources[1].copied(call)?);
    let write = || -> scry_gpu::Result<UntypedBuffer> {
        let buffer = state.buffer.duplicate()?;
        match write {
            Write::Region(parts) => {
                // The index was checked when the write was recorded.
                if let Ok(region) = state_regions::region(call, parts, state.shape()) {
                    let size = state.dtype.size();
                    for (from, to) in state_regions::copies(&region, size, &new.buffer, &buffer)? {
                        from.copy_to(&to)?;
                    }
                }
            }
            Write::Rows if new.shape().contains(&0) => {}
            Write::Rows => {
                let (new, indices_dtype) = (&new.buffer, sources[2].dtype);
                let count = sources[2].shape()[0];
                let columns = state.shape()[1..].iter().product();
                let packed = sources[2].copied(call);
                let indices = packed.as_ref().map_or(&sources[2].buffer, |it| &it.buffer);
                let rows = state_regions::Rows { new, indices, dtype: state.dtype, indices_dtype };
                let sizes = [state.shape()[0], columns, count];
                rows.prepare(&state.runtime, &buffer, sizes)?.run()?;
            }
        }
        Ok(buffer)
    };
    let buffer = write().map_err(|error| call.gpu(error))?;
    Ok(Stored { buffer, ..state.clone() })
}

/// Runs a custom kernel.
fn outputs(
    call: Call,
    runtime: &Arc<Runtime>,
    node: &BoundNode,
    sources: &[&Stored],
) -> Result<Vec<Stored>> {
    let sources: Vec<Stored> = sources.iter().map(|it| it.copied(call)).collect::<Result<_>>()?;
    let mut results = Vec::new();
    for (shape, dtype) in &node.results {
        let bytes = crate::op::packed_bytes(shape, *dtype);
        let buffer = runtime.device().alloc_untyped(None, bytes);
        let buffer = buffer.map_err(|error| call.gpu(error))?;
        let layout = Layout::contiguous(shape.clone());
        results.push(Stored { runtime: runtime.clone(), buffer, layout, dtype: *dtype });
    }
    let buffers: Vec<_> = sources.iter().chain(&results).map(|it| (&it.buffer, it.dtype)).collect();
    let count = node.shape.count().unwrap_or(0);
    let launch = node.kernel.as_ref().map_or(Ok(None), |kernel| kernel.prepare(&buffers, count));
    let run = launch.and_then(|launch| launch.map_or(Ok(()), |launch| launch.run()));
    run.map_err(|error| call.gpu(error))?;
    Ok(results)
}

/// Returns a view of a value.
pub(super) async fn viewed(
    call: Call,
    value: &Stored,
    views: &[View],
    waiting: Waiting,
) -> Result<Stored> {
    if views.is_empty() {
        return Ok(value.clone());
    }
    let (views, value) = (views.to_vec(), value.clone());
    let device = value.runtime.device().clone();
    let apply = move || {
        let mut value = value.clone();
        for view in &views {
            value = Op::View(view.clone()).run(call, &[&value])?;
        }
        Ok(value)
    };
    waiting.compile(call, &device, apply).await
}
