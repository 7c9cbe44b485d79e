//! Rewrites of nodes: one table of rules, applied bottom-up until none matches.
//!
//! A rule changes no bit of any result, except the bits of NaN.

use std::collections::HashMap;

use scry_gpu::kir::{BinaryOp, Type, UnaryOp};

use super::bound_graph::{BoundGraph, BoundNode, live};
use super::node::{Content, NodeId};
use crate::expr::{Map, Scalar};
use crate::op::{Op, View};
use crate::shape::Layout;

/// What replaces a node.
enum Rewrite {
    /// Another node.
    Same(NodeId),
    /// An operation of nodes, with the same shape and element type.
    Op(Op, Vec<NodeId>),
}

/// A rewrite of nodes that match a pattern.
struct Rule {
    name: &'static str,
    rewrite: fn(&BoundGraph, &BoundNode) -> Option<Rewrite>,
}

const RULES: &[Rule] = &[
    Rule { name: "a view with the same order of elements is the operand", rewrite: same_view },
    Rule { name: "a permutation of a permutation is one", rewrite: permutations },
    Rule { name: "x * 1, x / 1 and x - 0 are x", rewrite: neutral_argument },
    Rule { name: "-(-x) and !(!x) are x", rewrite: involution },
    Rule { name: "an idempotent function twice is once", rewrite: idempotent },
    Rule {
        name: "a conversion of an exact conversion to its source is the source",
        rewrite: round_trip,
    },
];

/// How often each rule was applied.
pub(crate) type Applied = Vec<(&'static str, usize)>;

/// Returns the simplified graph, without nodes that no output depends on.
pub(crate) fn simplify(graph: &BoundGraph) -> (BoundGraph, Applied) {
    let mut new = BoundGraph::default();
    let mut known: HashMap<(Content, Vec<NodeId>), NodeId> = HashMap::new();
    let mut applied: Applied = RULES.iter().map(|rule| (rule.name, 0)).collect();
    let mut ids = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let mut node = node.clone();
        node.sources.iter_mut().for_each(|source| *source = ids[source.index()]);
        let id = loop {
            let mut rewrites = RULES.iter().enumerate();
            let found =
                rewrites.find_map(|(n, rule)| (rule.rewrite)(&new, &node).map(|it| (n, it)));
            let Some((rule, rewrite)) = found else { break None };
            applied[rule].1 += 1;
            match rewrite {
                Rewrite::Same(id) => break Some(id),
                Rewrite::Op(op, sources) => {
                    (node.content, node.sources) = (Content::Op(op), sources)
                }
            }
        };
        ids.push(id.unwrap_or_else(|| {
            let key = (node.content.clone(), node.sources.clone());
            *known.entry(key).or_insert_with(|| {
                new.nodes.push(node);
                NodeId(new.nodes.len() as u32 - 1)
            })
        }));
    }
    new.outputs = graph.outputs.iter().map(|output| ids[output.index()]).collect();
    new.writes = graph.writes.iter().map(|write| ids[write.index()]).collect();
    applied.retain(|(_, count)| *count > 0);
    (without_dead(&new), applied)
}

/// Removes nodes that no output depends on.
fn without_dead(graph: &BoundGraph) -> BoundGraph {
    let roots = graph.outputs.iter().chain(&graph.writes);
    let live = live(graph.nodes.len(), roots, |node| &graph.nodes[node].sources);
    let mut new = BoundGraph::default();
    let mut ids = vec![NodeId(0); graph.nodes.len()];
    for (position, node) in graph.nodes.iter().enumerate().filter(|(n, _)| live[*n]) {
        ids[position] = NodeId(new.nodes.len() as u32);
        let mut node = node.clone();
        node.sources.iter_mut().for_each(|source| *source = ids[source.index()]);
        new.nodes.push(node);
    }
    new.outputs = graph.outputs.iter().map(|output| ids[output.index()]).collect();
    new.writes = graph.writes.iter().map(|write| ids[write.index()]).collect();
    new
}

/// Returns the map of a node, and its arguments.
fn map_of(node: &BoundNode) -> Option<(&Map, &[u32])> {
    match &node.content {
        Content::Op(Op::Map(map, arguments)) => Some((map, arguments)),
        _ => None,
    }
}

fn source<'g>(graph: &'g BoundGraph, node: &BoundNode) -> Option<&'g BoundNode> {
    node.sources.first().map(|it| &graph.nodes[it.index()])
}

fn same_view(graph: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    let Content::Op(Op::View(view)) = &node.content else { return None };
    let source = source(graph, node)?;
    let like = node.sources.get(1).map(|it| &graph.nodes[it.index()].shape);
    let layout = view.layout(node.call, &Layout::contiguous(source.shape.clone()), like).ok()??;
    let is_same = layout.shape == *source.shape && layout.is_contiguous() && layout.offset == 0;
    is_same.then(|| Rewrite::Same(node.sources[0]))
}

fn permutations(graph: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    let Content::Op(Op::View(View::Permute(second))) = &node.content else { return None };
    let source = source(graph, node)?;
    let Content::Op(Op::View(View::Permute(first))) = &source.content else { return None };
    let axes = second.iter().map(|axis| first[*axis]).collect();
    Some(Rewrite::Op(Op::View(View::Permute(axes)), source.sources.clone()))
}

fn neutral_argument(_: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    let (map, arguments) = map_of(node)?;
    let (Scalar::Binary(op, a, b), ty) = map.scalars[map.result.index()] else { return None };
    let [of_a, of_b] = [a, b].map(|id| map.scalars[id.index()].0);
    let (Scalar::Load(0), Scalar::Argument(0)) = (of_a, of_b) else { return None };
    let neutral = match (op, ty) {
        (BinaryOp::Mul | BinaryOp::Div, Type::F32) => 1f32.to_bits(),
        (BinaryOp::Mul, Type::I32 | Type::U32) => 1,
        (BinaryOp::Sub, Type::F32 | Type::I32 | Type::U32) => 0,
        (BinaryOp::Add, Type::I32 | Type::U32) => 0,
        _ => return None,
    };
    (arguments == [neutral]).then(|| Rewrite::Same(node.sources[0]))
}

/// Returns the function of a map that is one.
fn function(node: &BoundNode) -> Option<UnaryOp> {
    let (map, _) = map_of(node)?;
    let (Scalar::Unary(op, a), _) = map.scalars[map.result.index()] else { return None };
    let is_alone = map.scalars.len() == 2 && map.scalars[a.index()].0 == Scalar::Load(0);
    (is_alone && map.output == map.operands[0]).then_some(op)
}

fn involution(graph: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    let source = source(graph, node)?;
    let (op, inner) = (function(node)?, function(source)?);
    let is_inverse = op == inner && matches!(op, UnaryOp::Neg | UnaryOp::Not);
    is_inverse.then(|| Rewrite::Same(source.sources[0]))
}

fn idempotent(graph: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    use UnaryOp::{Abs, Ceil, Floor, Round, Trunc};
    let (op, inner) = (function(node)?, function(source(graph, node)?)?);
    let is_idempotent = op == inner && matches!(op, Abs | Floor | Ceil | Round | Trunc);
    is_idempotent.then(|| Rewrite::Same(node.sources[0]))
}

fn round_trip(graph: &BoundGraph, node: &BoundNode) -> Option<Rewrite> {
    use crate::dtype::DType::{BF16, F16, F32};
    let source = source(graph, node)?;
    let conversion = |node: &BoundNode| {
        let (map, _) = map_of(node)?;
        (map.scalars.len() == 1 && map.operands.len() == 1).then_some((map.operands[0], map.output))
    };
    let (second, first) = (conversion(node)?, conversion(source)?);
    let is_exact = matches!(first, (F16 | BF16, F32)) && second == (F32, first.0);
    is_exact.then(|| Rewrite::Same(source.sources[0]))
}
