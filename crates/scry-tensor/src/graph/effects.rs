//! Grouping of custom kernels, and of states.

use super::bound_graph::BoundNode;
use super::fused::{Fused, Value};
use super::group::Grouping;
use super::grouped::{BufferId, Kernel, Origin, Work};
use super::node::{NodeId, Write};
use super::reason::Reason;
use super::state_regions;
use crate::error::Result;
use crate::op::{View, packed_bytes};
use crate::shape::Layout;

/// Custom kernels, and states.
impl Grouping<'_> {
    /// Returns an output of a custom kernel, after its first.
    pub(super) fn part(&mut self, node: &BoundNode, position: usize) -> Value {
        let buffer = self.parts.get(&node.sources[0]).map(|parts| parts[position]);
        drop(self.take(node.sources[0]));
        let layout = Layout::contiguous(node.shape.clone());
        Value::Stored(buffer.unwrap_or(BufferId(0)), node.dtype, layout)
    }

    /// Returns a state at the start of a run.
    pub(super) fn state(&mut self, id: NodeId, node: &BoundNode, position: usize) -> Value {
        let buffer = self.buffer(Origin::State(position), packed_bytes(&node.shape, node.dtype));
        self.states.insert(id, buffer);
        Value::Stored(buffer, node.dtype, Layout::contiguous(node.shape.clone()))
    }

    /// Returns the buffer of a value in row-major order without gaps: its own, or a copy. `views`
    /// are those of the node that the value already has.
    fn packed(
        &mut self,
        id: NodeId,
        value: Value,
        views: Vec<View>,
        reader: &'static str,
    ) -> BufferId {
        let reason = Reason::Operand(reader);
        let fused = match value {
            Value::Stored(buffer, dtype, layout) => {
                let is_packed = layout.is_contiguous() && layout.offset == 0;
                let bytes = packed_bytes(&layout.shape, dtype);
                if is_packed && self.new.buffers[buffer.index()].bytes == bytes {
                    return buffer;
                }
                Fused::copy(buffer, dtype, layout)
            }
            Value::Fused(fused) => *fused,
        };
        match self.store(fused, reason, Some((id, views))) {
            Value::Stored(buffer, ..) => buffer,
            Value::Fused(_) => BufferId(0),
        }
    }

    pub(super) fn custom(&mut self, id: NodeId, node: &BoundNode) -> Value {
        let mut operands = Vec::new();
        for source in &node.sources {
            let value = self.take(*source);
            let dtype = self.graph.nodes[source.index()].dtype;
            let buffer = match value {
                // Other users of the value read it from memory, too.
                Value::Fused(_) => {
                    let stored = self.store_source(*source, value, Reason::Operand(node.call.op));
                    self.packed(*source, stored, Vec::new(), node.call.op)
                }
                stored @ Value::Stored(..) => {
                    self.packed(*source, stored, Vec::new(), node.call.op)
                }
            };
            operands.push((buffer, dtype));
        }
        let results = node.results.iter();
        let results: Vec<BufferId> = results
            .map(|(shape, dtype)| self.buffer(Origin::Result, packed_bytes(shape, *dtype)))
            .collect();
        let (result, others) = (results[0], results[1..].to_vec());
        self.parts.insert(id, results);
        let work = Work::Custom { kernel: node.kernel.clone(), operands, others };
        let (shape, nodes, value) = (node.shape.clone(), vec![id], Some((id, Vec::new())));
        let reason = Reason::Custom;
        self.new.kernels.push(Kernel { work, result, shape, nodes, reason, value });
        Value::Stored(result, node.dtype, Layout::contiguous(node.shape.clone()))
    }

    pub(super) fn write(&mut self, id: NodeId, node: &BoundNode, write: &Write) -> Result<Value> {
        let [previous, new] = [node.sources[0], node.sources[1]];
        let value = self.take(previous);
        let Some(state) = self.states.get(&previous).copied() else { return Ok(value) };
        self.states.insert(id, state);
        let value = self.take(new);
        let value = self.apart_from_states(new, value);
        let new = self.packed(new, value, Vec::new(), node.call.op);
        let work = match write {
            Write::Region(parts) => {
                let region = state_regions::region(node.call, parts, &node.shape)?;
                Work::Write { new, region, dtype: node.dtype }
            }
            Write::Rows => {
                let at = node.sources[2];
                let (index_dtype, count) =
                    (self.graph.nodes[at.index()].dtype, self.graph.nodes[at.index()].shape[0]);
                let value = self.take(at);
                let value = self.apart_from_states(at, value);
                let indices = self.packed(at, value, Vec::new(), node.call.op);
                Work::WriteRows { new, indices, dtype: node.dtype, index_dtype, count }
            }
        };
        self.keep_readers(state);
        let (shape, nodes, value) = (node.shape.clone(), vec![id], Some((id, Vec::new())));
        let reason = Reason::State;
        self.new.kernels.push(Kernel { work, result: state, shape, nodes, reason, value });
        Ok(Value::Stored(state, node.dtype, Layout::contiguous(node.shape.clone())))
    }

    /// Returns a copy of a value that is a state: one is copied before it is written to itself.
    fn apart_from_states(&mut self, id: NodeId, value: Value) -> Value {
        match value {
            Value::Stored(buffer, dtype, layout) if self.is_state(buffer) => {
                let copy = Fused::copy(buffer, dtype, layout);
                self.store(copy, Reason::State, Some((id, Vec::new())))
            }
            value => value,
        }
    }

    /// Stores all values that are read from a state and still have uses, before it is written.
    fn keep_readers(&mut self, state: BufferId) {
        for position in 0..self.values.len() {
            if self.uses[position] == 0 {
                continue;
            }
            let fused = match &self.values[position] {
                Some(Value::Stored(buffer, dtype, layout)) if *buffer == state => {
                    Fused::copy(*buffer, *dtype, layout.clone())
                }
                Some(Value::Fused(fused)) if fused.operands.iter().any(|it| it.0 == state) => {
                    (**fused).clone()
                }
                _ => continue,
            };
            let id = NodeId(position as u32);
            let stored = self.store(fused, Reason::State, Some((id, Vec::new())));
            self.values[position] = Some(stored);
        }
    }
}
