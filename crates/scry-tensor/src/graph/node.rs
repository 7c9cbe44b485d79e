//! Nodes of graphs: recorded operations, hash-consed, so that equal operations of equal operands
//! are one node.
//!
//! Sources of a node precede it, so that passes are loops over ids and need no recursion. Shapes
//! are inferred by the rules that operations run with, for each of the [`WITNESSES`]: shapes that
//! fit for all of them fit, except in contrived cases, for all sizes in the ranges; each run infers
//! the shapes for its own sizes again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use scry_gpu::Kernel;

use super::dim::{Dim, NamedDim, Size, WITNESSES};
use super::fusion::Fusion;
use crate::dtype::DType;
use crate::error::{Call, Error, ErrorKind, Result};
use crate::op::{Op, Part};
use crate::runtime::Runtime;
use crate::shape::Shape;
use crate::stored::{Stored, check_device};

/// A node, by position in [`Nodes::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Content {
    /// An input of each run, by position in [`Nodes::inputs`].
    Input(usize),
    /// A tensor in memory, by position in [`Nodes::params`].
    Param(usize),
    /// One number, repeated: its shape, and its bits in the type that kernels compute with.
    Const(Vec<Dim>, DType, u32),
    /// An operation of the sources.
    Op(Op),
    /// A custom kernel, by position in [`Nodes::kernels`], with the value of its first
    /// output.
    Kernel(usize),
    /// Another output of a custom kernel.
    Part(usize),
    /// A state at the start of a run, by position in [`Nodes::states`].
    State(usize),
    /// A state, the first source, after a write of the second source.
    Write(Write),
}

/// What a write changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    /// The elements at an index.
    Region(Vec<Part>),
    /// The rows at the indices in the third source.
    Rows,
}

/// A custom kernel. Kernels of equal sources and outputs are equal.
#[derive(Clone)]
pub(crate) struct CustomKernel {
    pub(crate) source: Arc<str>,
    pub(crate) kernel: Kernel,
    pub(crate) outputs: Vec<(Vec<Dim>, DType)>,
}

/// A state, and its node after the writes so far.
#[derive(Clone)]
pub(crate) struct StateInfo {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    pub(crate) latest: NodeId,
}

/// A recorded operation.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) sources: Vec<NodeId>,
    /// The shape in each of the [`WITNESSES`]; one if all are equal.
    pub(crate) shapes: Vec<Shape>,
    pub(crate) dtype: DType,
    /// The first call that recorded it.
    pub(crate) call: Call,
    pub(crate) scope: Arc<str>,
}

impl Node {
    /// Returns the shape in one of the [`WITNESSES`].
    pub(crate) fn shape(&self, witness: usize) -> &Shape {
        self.shapes.get(witness).unwrap_or(&self.shapes[0])
    }
}

/// An input of each run.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) sizes: Vec<Dim>,
    pub(crate) dtype: DType,
}

/// The nodes of a graph, and what they refer to.
#[derive(Clone, Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<Node>,
    pub(crate) inputs: Vec<Input>,
    /// Tensors in memory. They are kept, so that their addresses identify them.
    pub(crate) params: Vec<(Option<String>, Arc<Stored>)>,
    pub(crate) states: Vec<StateInfo>,
    /// Custom kernels, no two of them equal.
    pub(crate) kernels: Vec<Arc<CustomKernel>>,
    param_ids: HashMap<usize, usize>,
    pub(crate) dims: Vec<Arc<NamedDim>>,
    known: HashMap<(Content, Vec<NodeId>), NodeId>,
    /// The names of the open scopes, with their tokens.
    scopes: Vec<(u64, String)>,
    /// The names of the open scopes, joined.
    scope: Arc<str>,
    next_scope: u64,
    /// How far plans fuse operations, if the program has chosen.
    pub(crate) fusion: Option<Fusion>,
}

/// The nodes of a graph that tensors record.
pub(crate) struct Recorder {
    runtime: Arc<Runtime>,
    nodes: Mutex<Nodes>,
}

/// A tensor's node.
#[derive(Clone)]
pub(crate) struct NodeHandle {
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) id: NodeId,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// An operand of an operation to be recorded.
pub(crate) enum Operand<'o> {
    Stored(&'o Arc<Stored>),
    Node(&'o NodeHandle),
}

impl Recorder {
    pub(crate) fn new(runtime: Arc<Runtime>) -> Arc<Self> {
        Arc::new(Self { runtime, nodes: Mutex::default() })
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the open scopes, joined by dots.
    pub(crate) fn current_scope(&self) -> Arc<str> {
        self.lock().scope.clone()
    }

    /// Names the scope that is open in the error of a call.
    pub(crate) fn scoped<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.in_scope(&self.current_scope()))
    }

    /// Returns the scope in which a node was recorded.
    pub(crate) fn scope_of(&self, id: NodeId) -> Arc<str> {
        self.lock().nodes[id.index()].scope.clone()
    }

    /// Opens a scope and returns its token.
    pub(crate) fn open_scope(&self, name: &str) -> u64 {
        let mut nodes = self.lock();
        nodes.next_scope += 1;
        let token = nodes.next_scope;
        nodes.scopes.push((token, name.to_owned()));
        nodes.join_scopes();
        token
    }

    pub(crate) fn close_scope(&self, token: u64) {
        let mut nodes = self.lock();
        nodes.scopes.retain(|(own, _)| *own != token);
        nodes.join_scopes();
    }

    /// Records an operation of operands; tensors in memory become parameters.
    pub(crate) fn record(
        this: &Arc<Self>,
        call: Call,
        op: Op,
        operands: &[Operand<'_>],
    ) -> Result<NodeHandle> {
        let mut nodes = this.lock();
        let recorded = this.sources(call, &mut nodes, operands);
        let recorded = recorded.and_then(|sources| nodes.record_op(call, op, sources));
        let scope = nodes.scope.clone();
        recorded.map(|id| this.handle(&nodes, id)).map_err(|error| error.in_scope(&scope))
    }

    /// Returns the nodes of operands.
    pub(crate) fn sources(
        self: &Arc<Self>,
        call: Call,
        nodes: &mut Nodes,
        operands: &[Operand<'_>],
    ) -> Result<Vec<NodeId>> {
        let source = |operand: &Operand<'_>| match operand {
            Operand::Node(node) if Arc::ptr_eq(&node.recorder, self) => Ok(node.id),
            Operand::Node(node) => Err(self.other_graph(call, node)),
            Operand::Stored(stored) => self.param(call, nodes, None, stored),
        };
        operands.iter().map(source).collect()
    }

    fn other_graph(&self, call: Call, node: &NodeHandle) -> Error {
        if let Err(error) = check_device(call, &self.runtime, node.recorder.runtime()) {
            return error;
        }
        let problem = "the operands are nodes of different graphs";
        let help = "record all operations in one graph, or run the other one's plan first";
        call.error(ErrorKind::Graph, problem, help)
    }

    /// Returns the node of a tensor in memory.
    pub(crate) fn param(
        &self,
        call: Call,
        nodes: &mut Nodes,
        name: Option<&str>,
        stored: &Arc<Stored>,
    ) -> Result<NodeId> {
        check_device(call, &self.runtime, &stored.runtime)?;
        let known = nodes.param_ids.get(&Arc::as_ptr(stored).addr()).copied();
        let position = known.unwrap_or(nodes.params.len());
        if known.is_none() {
            nodes.params.push((name.map(str::to_owned), stored.clone()));
            nodes.param_ids.insert(Arc::as_ptr(stored).addr(), position);
        }
        let shapes = vec![stored.shape().clone()];
        Ok(nodes.add(call, Content::Param(position), Vec::new(), shapes, stored.dtype))
    }

    /// Returns the handle of a node.
    pub(crate) fn handle(self: &Arc<Self>, nodes: &Nodes, id: NodeId) -> NodeHandle {
        let node = &nodes.nodes[id.index()];
        let (shape, dtype) = (node.shape(0).clone(), node.dtype);
        NodeHandle { recorder: self.clone(), id, shape, dtype }
    }
}

impl Nodes {
    /// Records an operation.
    fn record_op(&mut self, call: Call, op: Op, sources: Vec<NodeId>) -> Result<NodeId> {
        let key = (Content::Op(op), sources);
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let (Content::Op(op), sources) = &key else { return Ok(NodeId(0)) };
        let first = self.nodes[sources[0].index()].dtype;
        let is_symbolic = sources.iter().any(|it| self.nodes[it.index()].shapes.len() > 1);
        let mut shapes = Vec::new();
        for witness in 0..if is_symbolic { WITNESSES } else { 1 } {
            let operands: Vec<&Shape> =
                sources.iter().map(|it| self.nodes[it.index()].shape(witness)).collect();
            let shape = op.shape(call, first, &operands);
            shapes.push(shape.map_err(|error| self.for_sizes(error, witness))?);
        }
        let dtype = op.dtype(first);
        let (content, sources) = key;
        Ok(self.add(call, content, sources, shapes, dtype))
    }

    /// Says for which sizes an error occurs.
    fn for_sizes(&self, error: Error, witness: usize) -> Error {
        let size = |dim: &Arc<NamedDim>| format!("{} = {}", dim.name, dim.witness(witness));
        let sizes: Vec<String> = self.dims.iter().map(size).collect();
        if sizes.is_empty() { error } else { error.when(&format!(", with {}", sizes.join(", "))) }
    }

    /// Adds a node, unless there is an equal one.
    pub(crate) fn add(
        &mut self,
        call: Call,
        content: Content,
        sources: Vec<NodeId>,
        mut shapes: Vec<Shape>,
        dtype: DType,
    ) -> NodeId {
        let next = NodeId(self.nodes.len() as u32);
        let key = (content.clone(), sources.clone());
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            if shapes.iter().all(|shape| *shape == shapes[0]) {
                shapes.truncate(1);
            }
            let scope = self.scope.clone();
            self.nodes.push(Node { content, sources, shapes, dtype, call, scope });
        }
        id
    }

    /// Returns a shape in each of the [`WITNESSES`].
    pub(crate) fn shapes(call: Call, sizes: &[Dim]) -> Result<Vec<Shape>> {
        let shape = |witness| {
            let size = |dim: &Dim| match &dim.0 {
                Size::Fixed(Some(size)) => Ok(*size),
                Size::Fixed(None) => {
                    let help = "use sizes of at least 0";
                    Err(call.error(ErrorKind::Shape, "a size is negative", help))
                }
                Size::Named(dim) => Ok(dim.witness(witness)),
            };
            sizes.iter().map(size).collect::<Result<Vec<_>>>().map(Shape::from)
        };
        (0..WITNESSES).map(shape).collect()
    }

    fn join_scopes(&mut self) {
        let names: Vec<&str> = self.scopes.iter().map(|(_, name)| name.as_str()).collect();
        self.scope = names.join(".").into();
    }
}
