//! Grouping of operations whose elements depend on coordinates: pieces of operands, positions,
//! random numbers.

use super::bound_graph::BoundNode;
use super::fused::{Fused, Value};
use super::group::Grouping;
use super::materialise;
use super::node::NodeId;
use super::reason::Reason;
use crate::dtype::DType;
use crate::op::{Computed, Join, Piece};
use crate::shape::{Layout, Shape};

impl Grouping<'_> {
    /// Returns pieces of the sources, each a source whose layout is moved.
    pub(super) fn join(&mut self, node: &BoundNode, join: &Join) -> Value {
        let graph = self.graph;
        let shapes = graph.source_shapes(node);
        let mut values: Vec<Value> = node.sources.iter().map(|id| self.take(*id)).collect();
        if node.shape.contains(&0) {
            return Value::Fused(Box::new(Fused::constant(node.dtype, 0, &node.shape)));
        }
        let (pieces, map, arguments) = join.pieces(node.dtype, &shapes);
        let mut sources = Vec::new();
        for piece in &pieces {
            let id = node.sources[piece.operand];
            let count = pieces.iter().filter(|other| other.operand == piece.operand).count();
            if count > 1 {
                let value = values[piece.operand].clone();
                values[piece.operand] = self.store_source(id, value, Reason::Shared(count));
            }
            let value = values[piece.operand].clone();
            sources.push((id, self.moved(id, value, piece, &node.shape)));
        }
        self.fused(&map, &arguments, None, sources, &node.shape)
    }

    /// Returns a value with the layout of a piece of a result.
    fn moved(&mut self, id: NodeId, value: Value, piece: &Piece, result: &Shape) -> Value {
        let count = result.count().unwrap_or(0);
        let stored = match value {
            Value::Fused(fused) => {
                let viewed = match materialise::joined(&fused, count) {
                    Some(reason) => Err((fused, reason)),
                    None => fused.viewed(|layout: &Layout| Some(piece.moved(layout, result))),
                };
                match viewed {
                    Ok(viewed) => return Value::Fused(viewed),
                    Err((fused, reason)) => self.store_source(id, Value::Fused(fused), reason),
                }
            }
            stored @ Value::Stored(..) => stored,
        };
        match stored {
            Value::Stored(buffer, dtype, layout) => {
                Value::Stored(buffer, dtype, piece.moved(&layout, result))
            }
            fused @ Value::Fused(_) => fused,
        }
    }

    /// Returns a function of coordinates and of indices. Of the last source only the shape is used.
    pub(super) fn computed(&mut self, node: &BoundNode, computed: &Computed) -> Value {
        let graph = self.graph;
        let Some((like, others)) = node.sources.split_last() else {
            return Value::Fused(Box::new(Fused::constant(node.dtype, 0, &node.shape)));
        };
        drop(self.take(*like));
        let dtypes: Vec<DType> = others.iter().map(|it| graph.nodes[it.index()].dtype).collect();
        let (map, arguments) = computed.map(&dtypes, &graph.nodes[like.index()].shape);
        let mut sources = Vec::new();
        for id in others {
            let value = self.take(*id);
            sources.push((*id, self.source(*id, value, &node.shape)));
        }
        self.fused(&map, &arguments, None, sources, &node.shape)
    }
}
