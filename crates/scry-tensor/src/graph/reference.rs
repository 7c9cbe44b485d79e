//! What a plan is compared with: the operations that were recorded, one by one.

use std::collections::HashMap;
use std::sync::Arc;

use scry_gpu::UntypedBuffer;

use super::bound::{BoundGraph, BoundNode};
use super::compiled::Plan;
use super::node::{Content, NodeId, Write};
use super::regions;
use super::row_reference::RowOrders;
use crate::error::{Call, Result};
use crate::op::{Library, Op, View};
use crate::runtime::Runtime;
use crate::shape::Layout;
use crate::stored::{Stored, stored_word};

/// The outputs of kernels of the program, by their nodes.
pub(super) type Outputs = HashMap<NodeId, Vec<Stored>>;

/// Values of nodes as a plan computes them, with which the nodes after them continue.
pub(super) type Replaced = HashMap<NodeId, Stored>;

impl Plan {
    /// Computes all nodes one by one, and all outputs of kernels of the program. Reductions that
    /// row kernels compute have the order of these. Other nodes continue with the values in
    /// `replaced`, which become those that are computed.
    pub(super) fn one_by_one(
        &self,
        graph: &BoundGraph,
        inputs: &[&Arc<Stored>],
        states: &[UntypedBuffer],
        orders: &RowOrders,
        replaced: &mut Replaced,
    ) -> Result<(Vec<Stored>, Outputs)> {
        let shared = self.shared();
        let mut parts = Outputs::new();
        let mut values: Vec<Stored> = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let BoundNode { call, shape, .. } = node;
            let value = match &node.content {
                Content::Input(n) => Ok((**inputs[*n]).clone()),
                Content::Param(n) => Ok((*shared.graph.params[*n].1).clone()),
                Content::Const(_, dtype, bits) => {
                    let word = stored_word(*dtype, *bits);
                    Stored::repeated(*call, &shared.runtime, shape.clone(), *dtype, word)
                }
                Content::Op(op) => {
                    let operands: Vec<&Stored> =
                        node.sources.iter().map(|it| &values[it.index()]).collect();
                    match (op, orders.get(&NodeId(values.len() as u32))) {
                        (Op::Library(Library::Reduce(reduce)), Some(order)) => {
                            order.reduce(*call, reduce, operands[0], shape)
                        }
                        _ => op.run(*call, &operands),
                    }
                }
                Content::State(n) => Ok(self.whole(&shared.graph.states[*n], states[*n].clone())),
                Content::Write(write) => {
                    let sources: Vec<&Stored> =
                        node.sources.iter().map(|it| &values[it.index()]).collect();
                    written(*call, write, &sources)
                }
                Content::Kernel(_) => {
                    let sources: Vec<&Stored> =
                        node.sources.iter().map(|it| &values[it.index()]).collect();
                    let results = outputs(*call, &shared.runtime, node, &sources)?;
                    let first = results[0].clone();
                    parts.insert(NodeId(values.len() as u32), results);
                    Ok(first)
                }
                Content::Part(n) => Ok(parts[&node.sources[0]][*n].clone()),
            };
            let mut value = value.map_err(|error| error.in_scope(&node.scope))?;
            if let Some(replaced) = replaced.get_mut(&NodeId(values.len() as u32)) {
                std::mem::swap(replaced, &mut value);
            }
            values.push(value);
        }
        Ok((values, parts))
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
                if let Ok(region) = regions::region(call, parts, state.shape()) {
                    let size = state.dtype.size();
                    for (from, to) in regions::copies(&region, size, &new.buffer, &buffer)? {
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
                let rows = regions::Rows { new, indices, dtype: state.dtype, indices_dtype };
                let sizes = [state.shape()[0], columns, count];
                rows.prepare(&state.runtime, &buffer, sizes)?.run()?;
            }
        }
        Ok(buffer)
    };
    let buffer = write().map_err(|error| call.gpu(error))?;
    Ok(Stored { buffer, ..state.clone() })
}

/// Runs a kernel of the program.
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
pub(super) fn viewed(call: Call, value: &Stored, views: &[View]) -> Result<Stored> {
    let mut value = value.clone();
    for view in views {
        value = Op::View(view.clone()).run(call, &[&value])?;
    }
    Ok(value)
}
