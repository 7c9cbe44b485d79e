//! Groups of nodes that become one kernel each: an operation of the kernel library, or a map with
//! all element-wise operations and views that are fused into it.
//!
//! One greedy pass in the order of ids. A value is stored, with layout; or fused, until
//! [`materialise`](super::materialise) or a consumer decides that it must be stored.

use std::collections::HashMap;

use super::Fusion;
use super::bound_graph::{BoundGraph, BoundNode};
use super::fused::{self, Fused, Value};
use super::grouped::{BufferId, BufferInfo, Grouped, Kernel, Origin, Viewed, Work};
use super::materialise;
use super::node::{Content, NodeId};
use super::reason::{MAX_INPUTS, Reason};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Map;
use crate::lower::GatherAxis;
use crate::op::{Gathered, Library, Op, Selection, Trivial, View, packed_bytes};
use crate::shape::{Layout, Shape};
use crate::stored::Stored;

/// What the device allows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How far nodes are fused.
    pub(crate) fusion: Fusion,
    /// Whether the device is the CPU device.
    pub(crate) is_cpu: bool,
    /// Whether it is a GPU with CUDA.
    pub(crate) is_cuda: bool,
    /// Whether operations of the kernel library read `f16`, and `bf16`.
    pub(crate) has_f16: bool,
    pub(crate) has_bf16: bool,
    /// Alignment of bindings in bytes.
    pub(crate) alignment: u64,
    /// Storage buffers of a launch.
    pub(crate) bindings: usize,
    /// Bytes of each of them.
    pub(crate) binding_bytes: u64,
}

impl Limits {
    /// Returns how many inputs a kernel may have, beside its result and a buffer of parameters.
    pub(crate) fn inputs(&self) -> usize {
        self.bindings.saturating_sub(2).clamp(1, MAX_INPUTS)
    }
}

/// The state of the pass.
pub(super) struct Grouping<'g> {
    pub(super) graph: &'g BoundGraph,
    limits: Limits,
    /// The values of nodes that still have uses.
    pub(super) values: Vec<Option<Value>>,
    /// The uses of each node that are not grouped yet.
    pub(super) uses: Vec<usize>,
    is_output: Vec<bool>,
    /// Whether an operation of the kernel library or a custom kernel reads the node.
    is_operand: Vec<bool>,
    /// The buffers of states, by the nodes of their versions. (The value of such a node that is an
    /// output is a copy.)
    pub(super) states: HashMap<NodeId, BufferId>,
    /// Packed copies of elements in memory, which all readers share.
    copies: HashMap<(BufferId, Layout), Value>,
    /// The outputs of custom kernels.
    pub(super) parts: HashMap<NodeId, Vec<BufferId>>,
    pub(super) new: Grouped,
}

/// Groups the nodes of a graph into kernels.
pub(crate) fn group(graph: &BoundGraph, params: &[&Stored], limits: Limits) -> Result<Grouped> {
    let count = graph.nodes.len();
    let mut uses = vec![0; count];
    let sources = graph.nodes.iter().flat_map(|node| &node.sources);
    sources.chain(&graph.outputs).for_each(|source| uses[source.index()] += 1);
    let mut is_output = vec![false; count];
    graph.outputs.iter().for_each(|output| is_output[output.index()] = true);
    let is_operand = operands(graph);
    let new = Grouped { kernels: Vec::new(), buffers: Vec::new(), outputs: Vec::new() };
    let values = vec![None; count];
    let (states, parts, copies) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut grouping =
        Grouping { graph, limits, values, uses, is_output, is_operand, states, copies, parts, new };
    for position in 0..count {
        grouping.node(NodeId(position as u32), params)?;
    }
    for output in &graph.outputs {
        if let Some(Value::Stored(buffer, dtype, layout)) = &grouping.values[output.index()] {
            grouping.new.outputs.push((*buffer, layout.clone(), *dtype));
        }
    }
    Ok(grouping.new)
}

/// Returns of which nodes memory is read, by an operation of the kernel library or a kernel of the
/// program: itself, or views of it by an operation that reads strided operands.
fn operands(graph: &BoundGraph) -> Vec<bool> {
    let mut is_operand = vec![false; graph.nodes.len()];
    let mut is_strided = is_operand.clone();
    for (position, node) in graph.nodes.iter().enumerate().rev() {
        let mark = |marked: &mut Vec<bool>| {
            node.sources.iter().for_each(|source| marked[source.index()] = true);
        };
        match &node.content {
            Content::Op(Op::Library(library)) => {
                mark(&mut is_operand);
                if matches!(library, Library::Attend(_)) {
                    mark(&mut is_strided);
                }
            }
            Content::Kernel(_) => mark(&mut is_operand),
            Content::Op(Op::View(_)) if is_strided[position] => mark(&mut is_strided),
            _ => {}
        }
    }
    is_operand.iter().zip(is_strided).map(|(operand, strided)| *operand || strided).collect()
}

impl Grouping<'_> {
    fn node(&mut self, id: NodeId, params: &[&Stored]) -> Result<()> {
        let graph = self.graph;
        let node = &graph.nodes[id.index()];
        let value = match &node.content {
            Content::Input(n) => {
                let buffer = self.buffer(Origin::Input(*n), packed_bytes(&node.shape, node.dtype));
                Value::Stored(buffer, node.dtype, Layout::contiguous(node.shape.clone()))
            }
            Content::Param(n) => {
                let buffer = self.buffer(Origin::Param(*n), params[*n].buffer.byte_size() as usize);
                Value::Stored(buffer, node.dtype, params[*n].layout.clone())
            }
            Content::Const(_, dtype, bits) => {
                Value::Fused(Box::new(Fused::constant(*dtype, *bits, &node.shape)))
            }
            Content::Op(op) => self.operation(id, node, op)?,
            Content::Kernel(_) => self.custom(id, node),
            Content::Part(n) => self.part(node, *n),
            Content::State(n) => self.state(id, node, *n),
            Content::Write(write) => self.write(id, node, write)?,
        };
        let value = self.finished(id, value);
        self.values[id.index()] = Some(value);
        Ok(())
    }

    /// Stores a value now if it must be.
    fn finished(&mut self, id: NodeId, value: Value) -> Value {
        let mut fused = match value {
            // Later runs change a state: an output is a copy.
            Value::Stored(buffer, dtype, layout)
                if self.is_output[id.index()] && self.is_state(buffer) =>
            {
                Box::new(Fused::copy(buffer, dtype, layout))
            }
            Value::Stored(buffer, ..) => {
                if self.is_output[id.index()] {
                    self.set_output(buffer);
                }
                return value;
            }
            Value::Fused(fused) => fused,
        };
        let is_view = matches!(self.graph.nodes[id.index()].content, Content::Op(Op::View(_)));
        if !is_view {
            fused.nodes.push(id);
        }
        let bytes = |fused: &Fused| {
            let size =
                |(buffer, _): &(BufferId, Layout)| self.new.buffers[buffer.index()].bytes as u64;
            fused.operands.iter().map(size).sum()
        };
        let reason = if self.is_output[id.index()] {
            Some(Reason::Output)
        } else if self.limits.fusion == Fusion::None && !is_view {
            Some(Reason::Disabled)
        } else {
            let (uses, is_operand) = (self.uses[id.index()], self.is_operand[id.index()]);
            materialise::shared(&fused, uses, is_operand, &bytes)
        };
        let Some(reason) = reason else { return Value::Fused(fused) };
        let stored = self.store(*fused, reason, Some((id, Vec::new())));
        if let (Reason::Output, Value::Stored(buffer, ..)) = (reason, &stored) {
            self.set_output(*buffer);
        }
        stored
    }

    pub(super) fn is_state(&self, buffer: BufferId) -> bool {
        matches!(self.new.buffers[buffer.index()].origin, Origin::State(_))
    }

    fn set_output(&mut self, buffer: BufferId) {
        let origin = &mut self.new.buffers[buffer.index()].origin;
        if *origin == Origin::Result {
            *origin = Origin::Output;
        }
    }

    pub(super) fn buffer(&mut self, origin: Origin, bytes: usize) -> BufferId {
        self.new.buffers.push(BufferInfo { origin, bytes });
        BufferId(self.new.buffers.len() as u32 - 1)
    }

    /// Returns the value of a source: moved if this is its last use.
    pub(super) fn take(&mut self, id: NodeId) -> Value {
        let uses = &mut self.uses[id.index()];
        *uses -= 1;
        let value = &mut self.values[id.index()];
        let value = if *uses == 0 { value.take() } else { value.clone() };
        value.unwrap_or_else(|| {
            Value::Fused(Box::new(Fused::constant(DType::F32, 0, &Shape::default())))
        })
    }

    /// Adds the kernel that stores an expression: the value of a node, or a view of one.
    pub(super) fn store(&mut self, fused: Fused, reason: Reason, value: Option<Viewed>) -> Value {
        let (dtype, shape) = (fused.dtype, fused.shape.clone());
        let result = self.buffer(Origin::Result, packed_bytes(&shape, dtype));
        let nodes = fused.nodes.clone();
        let work = fused.into_work();
        self.new.kernels.push(Kernel { work, result, shape: shape.clone(), nodes, reason, value });
        Value::Stored(result, dtype, Layout::contiguous(shape))
    }

    /// Stores a source and lets its other users read it from memory.
    pub(super) fn store_source(&mut self, id: NodeId, value: Value, reason: Reason) -> Value {
        let Value::Fused(fused) = value else { return value };
        let stored = self.store(*fused, reason, Some((id, Vec::new())));
        if self.uses[id.index()] > 0 {
            self.values[id.index()] = Some(stored.clone());
        }
        stored
    }

    fn operation(&mut self, id: NodeId, node: &BoundNode, op: &Op) -> Result<Value> {
        let shapes = self.graph.source_shapes(node);
        let first = self.graph.nodes[node.sources[0].index()].dtype;
        match op.trivial(first, &shapes, &node.shape) {
            Some(Trivial::Fill(bits)) => {
                node.sources.iter().for_each(|it| drop(self.take(*it)));
                return Ok(Value::Fused(Box::new(Fused::constant(node.dtype, bits, &node.shape))));
            }
            Some(Trivial::Same) => return self.view(node, &View::Reshape((&node.shape).into())),
            None => {}
        }
        match op {
            Op::View(view) => self.view(node, view),
            Op::Map(map, arguments) => self.map(node, map, arguments),
            Op::Gather(selection) => self.gather(node, *selection),
            Op::Join(join) => Ok(self.join(node, join)),
            Op::Computed(computed) => Ok(self.computed(node, computed)),
            Op::Library(library) => self.library(id, node, library),
        }
    }

    fn view(&mut self, node: &BoundNode, view: &View) -> Result<Value> {
        let like = node.sources.get(1).map(|it| self.graph.nodes[it.index()].shape.clone());
        node.sources[1..].iter().for_each(|it| drop(self.take(*it)));
        let value = self.take(node.sources[0]);
        self.viewed(node, Some(node.sources[0]), value, view, like.as_ref())
    }

    /// Returns a view of a value, which is stored first if its operands have no such view.
    fn viewed(
        &mut self,
        node: &BoundNode,
        id: Option<NodeId>,
        value: Value,
        view: &View,
        like: Option<&Shape>,
    ) -> Result<Value> {
        let stored = match value {
            Value::Stored(buffer, dtype, layout) => {
                if let Some(layout) = view.layout(node.call, &layout, like)? {
                    return Ok(Value::Stored(buffer, dtype, layout));
                }
                let value = id.map(|id| (id, Vec::new()));
                self.store(Fused::copy(buffer, dtype, layout), Reason::View, value)
            }
            Value::Fused(fused) => {
                let layout = |it: &Layout| view.layout(node.call, it, like).ok().flatten();
                let count = node.shape.count().unwrap_or(0);
                let viewed = match materialise::broadcast(&fused, count) {
                    Some(reason) => Err((fused, reason)),
                    None => fused.viewed(layout),
                };
                match (viewed, id) {
                    (Ok(viewed), _) => return Ok(Value::Fused(viewed)),
                    (Err((fused, reason)), Some(id)) => {
                        self.store_source(id, Value::Fused(fused), reason)
                    }
                    (Err((fused, reason)), None) => self.store(*fused, reason, None),
                }
            }
        };
        let Value::Stored(buffer, dtype, own) = stored else { return Ok(stored) };
        let layout = view.layout(node.call, &own, like)?;
        Ok(Value::Stored(buffer, dtype, layout.unwrap_or(own)))
    }

    /// Returns a value as an operand of a map with a shape.
    pub(super) fn source(&mut self, id: NodeId, value: Value, shape: &Shape) -> Value {
        let count = shape.count().unwrap_or(0);
        let value = match value {
            Value::Fused(fused) if fused.shape != *shape => {
                let viewed = match materialise::broadcast(&fused, count) {
                    Some(reason) => Err((fused, reason)),
                    None => fused.viewed(|layout| layout.expand(shape)),
                };
                match viewed {
                    Ok(viewed) => return Value::Fused(viewed),
                    Err((fused, reason)) => self.store_source(id, Value::Fused(fused), reason),
                }
            }
            value => value,
        };
        match value {
            Value::Stored(buffer, dtype, layout) => {
                let layout = layout.expand(shape).expect("the shape rule broadcasts operands");
                Value::Stored(buffer, dtype, layout)
            }
            fused @ Value::Fused(_) => fused,
        }
    }

    fn map(&mut self, node: &BoundNode, map: &Map, arguments: &[u32]) -> Result<Value> {
        let mut sources = Vec::new();
        for id in &node.sources {
            let value = self.take(*id);
            sources.push((*id, self.source(*id, value, &node.shape)));
        }
        Ok(self.fused(map, arguments, None, sources, &node.shape))
    }

    /// Fuses a map with its operands, after some of them are stored if it has too many.
    pub(super) fn fused(
        &mut self,
        map: &Map,
        arguments: &[u32],
        gathered: Option<GatherAxis>,
        mut sources: Vec<(NodeId, Value)>,
        shape: &Shape,
    ) -> Value {
        let limit = self.limits.inputs();
        loop {
            let values: Vec<&Value> = sources.iter().map(|(_, value)| value).collect();
            let Err(reason) = fused::check(map, &values, gathered, limit) else { break };
            let inputs = |(_, value): &(NodeId, Value)| match value {
                Value::Stored(..) => 0,
                Value::Fused(fused) => 1 + fused.operands.len(),
            };
            let Some(largest) = (0..sources.len()).max_by_key(|n| inputs(&sources[*n])) else {
                break;
            };
            let (id, value) = sources.swap_remove(largest);
            let is_same = matches!(&value, Value::Fused(fused) if fused.shape
                == self.graph.nodes[id.index()].shape);
            let stored = match value {
                value if is_same => self.store_source(id, value, reason),
                Value::Fused(fused) => self.store(*fused, reason, None),
                stored @ Value::Stored(..) => stored,
            };
            sources.push((id, stored));
            let last = sources.len() - 1;
            sources.swap(largest, last);
        }
        let sources = sources.into_iter().map(|(_, value)| value).collect();
        Value::Fused(Box::new(Fused::new(map, arguments, gathered, sources, shape)))
    }

    fn gather(&mut self, node: &BoundNode, selection: Selection) -> Result<Value> {
        let [from, at] = [node.sources[0], node.sources[1]];
        let elements = self.take(from);
        let elements = self.store_source(from, elements, Reason::Gather);
        let indices = self.take(at);
        let Value::Stored(buffer, dtype, layout) = elements else { return Ok(elements) };
        let index = Layout::contiguous(self.graph.nodes[at.index()].shape.clone());
        let gathered = Gathered::new(selection, &layout, &index, &node.shape);
        let embed = |it: &Layout| Some(Gathered::new(selection, &layout, it, &node.shape).indices);
        let indices = match indices {
            Value::Fused(fused) if fused.gathered.is_none() => match fused.viewed(embed) {
                Ok(viewed) => Value::Fused(viewed),
                Err((fused, reason)) => self.store_source(at, Value::Fused(fused), reason),
            },
            value => self.store_source(at, value, Reason::Gather),
        };
        let indices = match indices {
            Value::Stored(buffer, dtype, own) => {
                let own = Gathered::new(selection, &layout, &own, &node.shape).indices;
                Value::Stored(buffer, dtype, own)
            }
            fused @ Value::Fused(_) => fused,
        };
        let index_dtype = self.graph.nodes[at.index()].dtype;
        let map = Gathered::map(index_dtype, dtype);
        let sources = vec![(at, indices), (from, Value::Stored(buffer, dtype, gathered.elements))];
        Ok(self.fused(&map, &[], Some(gathered.axis), sources, &node.shape))
    }

    fn library(&mut self, id: NodeId, node: &BoundNode, library: &Library) -> Result<Value> {
        let graph = self.graph;
        let shapes = graph.source_shapes(node);
        let mut operands = Vec::new();
        for (n, id) in node.sources.iter().enumerate() {
            let mut value = self.take(*id);
            let views = library.view(n, &shapes);
            if views.iter().all(|view| !matches!(view, View::Permute(_))) {
                // In the order of the node, so that its other users read it from memory, too.
                value = self.store_source(*id, value, Reason::Operand(library.name()));
            }
            for view in &views {
                value = self.viewed(node, None, value, view, None)?;
            }
            let alignment = self.limits.alignment;
            let stored = match value {
                Value::Stored(buffer, dtype, layout) => {
                    match library.accepts(n, &layout, dtype, alignment) {
                        true => Value::Stored(buffer, dtype, layout),
                        false => {
                            let value = Some((*id, views));
                            self.copied(buffer, dtype, layout, library.name(), value)
                        }
                    }
                }
                Value::Fused(fused) => {
                    self.store(*fused, Reason::Operand(library.name()), Some((*id, views)))
                }
            };
            if let Value::Stored(buffer, dtype, layout) = stored {
                operands.push((buffer, layout, dtype));
            }
        }
        let result = self.buffer(Origin::Result, packed_bytes(&node.shape, node.dtype));
        let flops = library.flops(&shapes, &node.shape);
        let work = Work::Library { library: library.clone(), operands, flops };
        let (shape, nodes) = (node.shape.clone(), vec![id]);
        let (reason, value) = (Reason::Library, Some((id, Vec::new())));
        self.new.kernels.push(Kernel { work, result, shape, nodes, reason, value });
        let layout = Layout::contiguous(node.shape.clone());
        Ok(Value::Stored(result, node.dtype, layout))
    }

    /// Returns a packed copy of elements in memory for a reader, the known one if there is.
    fn copied(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        layout: Layout,
        reader: &'static str,
        value: Option<Viewed>,
    ) -> Value {
        let key = (buffer, layout.clone());
        if let Some(known) = self.copies.get(&key) {
            return known.clone();
        }
        let copy = self.store(Fused::copy(buffer, dtype, layout), Reason::Operand(reader), value);
        // A state may change before the next reader.
        if !self.is_state(buffer) {
            self.copies.insert(key, copy.clone());
        }
        copy
    }
}
