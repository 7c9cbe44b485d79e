//! A graph at the sizes of one run: the nodes that outputs depend on, with their shapes.

use std::sync::Arc;

use super::dim::{Dim, Size};
use super::node::{Content, CustomKernel, Input, Node, NodeId, Nodes, StateInfo, Write};
use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::op::Op;
use crate::shape::Shape;
use crate::stored::Stored;

/// The nodes that the outputs of a plan depend on, at any sizes.
pub(crate) struct Reachable {
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) params: Vec<(Option<String>, Arc<Stored>)>,
    pub(crate) outputs: Vec<NodeId>,
    pub(crate) states: Vec<StateInfo>,
    pub(crate) kernels: Vec<Arc<CustomKernel>>,
    /// The last write of each state.
    pub(crate) writes: Vec<NodeId>,
}

/// A node with its shape.
#[derive(Clone)]
pub(crate) struct BoundNode {
    /// The node of the graph as it was recorded that has this value.
    pub(crate) origin: NodeId,
    pub(crate) content: Content,
    pub(crate) sources: Vec<NodeId>,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) call: Call,
    pub(crate) scope: Arc<str>,
    /// The custom kernel that the node is.
    pub(crate) kernel: Option<Arc<CustomKernel>>,
    /// The shapes and types of all its outputs.
    pub(crate) results: Vec<(Shape, DType)>,
}

/// A graph with its shapes.
#[derive(Clone, Default)]
pub(crate) struct BoundGraph {
    pub(crate) nodes: Vec<BoundNode>,
    pub(crate) outputs: Vec<NodeId>,
    /// The last write of each state.
    pub(crate) writes: Vec<NodeId>,
}

/// The sizes of named dimensions, by name, in the order in which inputs name them.
pub(crate) type Sizes = Vec<(String, usize)>;

/// Returns for each node whether a root depends on it.
pub(crate) fn live<'n>(
    count: usize,
    roots: impl Iterator<Item = &'n NodeId>,
    sources: impl Fn(usize) -> &'n [NodeId],
) -> Vec<bool> {
    let mut live = vec![false; count];
    roots.for_each(|root| live[root.index()] = true);
    for node in (0..count).rev() {
        if live[node] {
            sources(node).iter().for_each(|source| live[source.index()] = true);
        }
    }
    live
}

impl Reachable {
    /// Copies the nodes that outputs depend on.
    pub(crate) fn new(nodes: &Nodes, outputs: &[NodeId]) -> Self {
        let writes = nodes.written();
        let roots = outputs.iter().chain(&writes);
        let live = live(nodes.nodes.len(), roots, |node| &nodes.nodes[node].sources);
        let mut new = Self {
            nodes: Vec::new(),
            inputs: Vec::new(),
            params: Vec::new(),
            outputs: Vec::new(),
            states: Vec::new(),
            kernels: nodes.kernels.clone(),
            writes: Vec::new(),
        };
        let mut ids = vec![NodeId(0); nodes.nodes.len()];
        for (position, node) in nodes.nodes.iter().enumerate().filter(|(n, _)| live[*n]) {
            ids[position] = NodeId(new.nodes.len() as u32);
            let mut node = node.clone();
            node.sources.iter_mut().for_each(|source| *source = ids[source.index()]);
            node.content = match node.content {
                Content::Input(n) => {
                    new.inputs.push(nodes.inputs[n].clone());
                    Content::Input(new.inputs.len() - 1)
                }
                Content::Param(n) => {
                    new.params.push(nodes.params[n].clone());
                    Content::Param(new.params.len() - 1)
                }
                Content::State(n) => {
                    new.states.push(nodes.states[n].clone());
                    Content::State(new.states.len() - 1)
                }
                other => other,
            };
            new.nodes.push(node);
        }
        new.writes = writes.iter().map(|write| ids[write.index()]).collect();
        new.outputs = outputs.iter().map(|output| ids[output.index()]).collect();
        new
    }

    /// Infers all shapes for sizes of the named dimensions.
    pub(crate) fn bind(&self, sizes: &Sizes) -> Result<BoundGraph> {
        let (outputs, writes) = (self.outputs.clone(), self.writes.clone());
        let mut bound = BoundGraph { nodes: Vec::new(), outputs, writes };
        for node in &self.nodes {
            let shape = match &node.content {
                Content::Input(n) => sized(&self.inputs[*n].sizes, sizes),
                Content::Param(_) | Content::State(_) => node.shapes[0].clone(),
                Content::Write(write) => {
                    bound.check_write(node, write).map_err(|error| error.when(&with(sizes)))?;
                    node.shapes[0].clone()
                }
                Content::Kernel(n) => sized(&self.kernels[*n].outputs[0].0, sizes),
                Content::Part(n) => bound.nodes[node.sources[0].index()].results[*n].0.clone(),
                Content::Const(dims, ..) => sized(dims, sizes),
                Content::Op(op) => bound
                    .shape(node.call, op, &node.sources)
                    .map_err(|error| error.when(&with(sizes)).in_scope(&node.scope))?,
            };
            let Node { content, sources, dtype, call, scope, .. } = node.clone();
            let origin = NodeId(bound.nodes.len() as u32);
            let kernel = match &content {
                Content::Kernel(n) => Some(self.kernels[*n].clone()),
                _ => None,
            };
            let outputs = kernel.iter().flat_map(|kernel| &kernel.outputs);
            let results = outputs.map(|(dims, dtype)| (sized(dims, sizes), *dtype)).collect();
            let node =
                BoundNode { origin, content, sources, shape, dtype, call, scope, kernel, results };
            bound.nodes.push(node);
        }
        Ok(bound)
    }

    /// Returns the largest sizes of all named dimensions.
    pub(crate) fn largest_sizes(&self) -> Sizes {
        self.ranges().into_iter().map(|(name, [_, max])| (name, max)).collect()
    }

    /// Returns the smallest sizes of all named dimensions for which there is something to compute.
    pub(crate) fn smallest_sizes(&self) -> Sizes {
        let ranges = self.ranges().into_iter();
        ranges.map(|(name, [min, max])| (name, min.max(1).min(max))).collect()
    }

    /// Returns whether the size of a named dimension varies.
    pub(crate) fn has_open_sizes(&self) -> bool {
        self.ranges().iter().any(|(_, [min, max])| min < max)
    }

    /// Returns the smallest and the largest size of each named dimension.
    pub(crate) fn ranges(&self) -> Vec<(String, [usize; 2])> {
        let mut ranges: Vec<(String, [usize; 2])> = Vec::new();
        let inputs = self.inputs.iter().flat_map(|input| &input.sizes);
        let others = self.nodes.iter().flat_map(|node| match &node.content {
            Content::Const(dims, ..) => vec![dims],
            Content::Kernel(n) => self.kernels[*n].outputs.iter().map(|(dims, _)| dims).collect(),
            _ => Vec::new(),
        });
        for Dim(size) in inputs.chain(others.flatten()) {
            if let Size::Named(dim) = size
                && !ranges.iter().any(|(name, _)| *name == dim.name)
            {
                ranges.push((dim.name.clone(), [dim.min, dim.max]));
            }
        }
        ranges
    }

    /// Checks that inputs choose the sizes of all named dimensions.
    pub(crate) fn check_dimensions(&self, call: Call) -> Result<()> {
        let of_inputs = self.inputs.iter().flat_map(|input| &input.sizes);
        let chosen: Vec<&Dim> = of_inputs.collect();
        let is_chosen = |name: &str| {
            chosen.iter().any(|dim| matches!(&dim.0, Size::Named(it) if it.name == name))
        };
        let Some((name, _)) = self.largest_sizes().into_iter().find(|(name, _)| !is_chosen(name))
        else {
            return Ok(());
        };
        let problem = format!("no input that the outputs depend on has the dimension `{name}`");
        Err(call.error(ErrorKind::Graph, problem, "use a number, or an input with the dimension"))
    }

    /// Returns the sizes of the named dimensions for inputs of these shapes.
    pub(crate) fn solve(&self, call: Call, shapes: &[Shape]) -> Result<Sizes> {
        let mut sizes = Sizes::new();
        for (input, shape) in self.inputs.iter().zip(shapes) {
            let wanted = super::dim::DimShape(input.sizes.clone());
            let name = &input.name;
            let mismatch = |help: String| {
                let problem = format!("input `{name}` has the shape {shape}, not {wanted}");
                Err(call.shape_error(&[shape], problem, help))
            };
            if shape.rank() != input.sizes.len() {
                return mismatch(format!("pass a tensor of rank {}", input.sizes.len()));
            }
            for (axis, (Dim(size), given)) in input.sizes.iter().zip(&**shape).enumerate() {
                match size {
                    Size::Fixed(size) if *size == Some(*given) => {}
                    Size::Fixed(_) => return mismatch(format!("check axis {axis}")),
                    Size::Named(dim) => {
                        if !(dim.min..=dim.max).contains(given) {
                            let help = format!(
                                "`{}` must be from {} to {}: pass fewer elements at a time, or \
                                 create the dimension with a larger range",
                                dim.name, dim.min, dim.max
                            );
                            return mismatch(help);
                        }
                        match sizes.iter().find(|(name, _)| *name == dim.name) {
                            Some((_, known)) if known == given => {}
                            Some((_, known)) => {
                                let name = &dim.name;
                                return mismatch(format!(
                                    "`{name}` is {known} in an input before it, and must be equal \
                                     in all"
                                ));
                            }
                            None => sizes.push((dim.name.clone(), *given)),
                        }
                    }
                }
            }
        }
        Ok(sizes)
    }
}

fn sized(dims: &[Dim], sizes: &Sizes) -> Shape {
    let size = |dim: &Dim| match &dim.0 {
        Size::Fixed(size) => size.unwrap_or(0),
        Size::Named(dim) => {
            let known = sizes.iter().find(|(name, _)| *name == dim.name);
            known.map_or(dim.max, |(_, size)| *size)
        }
    };
    dims.iter().map(size).collect::<Vec<_>>().into()
}

fn with(sizes: &Sizes) -> String {
    let sizes: Vec<String> = sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    format!(", with {}", sizes.join(", "))
}

impl BoundGraph {
    /// Returns the shape of an operation of nodes.
    fn shape(&self, call: Call, op: &Op, sources: &[NodeId]) -> Result<Shape> {
        let shapes: Vec<&Shape> = sources.iter().map(|it| &self.nodes[it.index()].shape).collect();
        op.shape(call, self.nodes[sources[0].index()].dtype, &shapes)
    }

    /// Checks that new rows of a state are as many as their indices.
    fn check_write(&self, node: &Node, write: &Write) -> Result<()> {
        let shape = |nth: usize| &self.nodes[node.sources[nth].index()].shape;
        if *write != Write::Rows || shape(1)[0] == shape(2)[0] {
            return Ok(());
        }
        let (new, at) = (shape(1), shape(2));
        let problem = format!("rows of shape {new} at indices of shape {at} do not fit a state");
        let help = "pass a row for each index";
        Err(node.call.shape_error(&[new, at], problem, help).in_scope(&node.scope))
    }

    /// Returns the shapes of a node's sources.
    pub(crate) fn source_shapes(&self, node: &BoundNode) -> Vec<&Shape> {
        node.sources.iter().map(|it| &self.nodes[it.index()].shape).collect()
    }
}

/// Checks that a graph has outputs.
pub(crate) fn check_outputs(call: Call, count: usize) -> Result<()> {
    if count > 0 {
        return Ok(());
    }
    let help = "pass the tensors that `run` should return";
    Err(call.error(ErrorKind::Graph, "there is no output to compile", help))
}
