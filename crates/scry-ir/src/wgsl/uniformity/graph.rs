//! The dependence graph of values and control flow, with sources of non-uniformity.

use std::collections::VecDeque;

use naga::{GlobalVariable, Handle, Span};

/// The widest scope over which a value is uniform, in order from most to least uniform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// All invocations of a workgroup agree.
    Workgroup,
    /// All invocations of a subgroup agree.
    Subgroup,
    /// Any two invocations may differ.
    Invocation,
}

/// A node of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(u32);

impl Node {
    /// Uniform over the workgroup.
    pub(super) const UNIFORM: Self = Self(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Why a value is not uniform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A builtin that differs between invocations or subgroups.
    Builtin,
    /// A load from memory that may be written.
    Memory(Handle<GlobalVariable>),
    /// A load through a pointer to a private variable.
    Private,
    /// The result of an atomic operation.
    Atomic,
    /// The result of a subgroup operation.
    Subgroup,
    /// The content of a variable that is written through one of several aliases.
    Alias,
    /// An expression that compute kernels do not support.
    Other,
}

/// A source of non-uniformity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) scope: Scope,
    pub(super) span: Span,
    pub(super) origin: Origin,
}

/// The kind of a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A value, or a point of the control flow: as uniform as all of its dependences.
    Plain,
    /// Control flow under a condition. It depends on the condition's value `on` and on the
    /// enclosing control flow.
    Branch { condition: Span, on: Node },
    /// A source of non-uniformity.
    Source(Source),
    /// An input of the function: as uniform as in the caller.
    Input(u32),
}

/// The end of a list of edges.
const NONE: u32 = u32::MAX;

/// A graph whose edges lead from a node to its dependences.
pub(super) struct Graph {
    kinds: Vec<Kind>,
    /// For each node the first of its edges.
    first: Vec<u32>,
    /// Target of each edge, and the next edge of the same node.
    edges: Vec<(Node, u32)>,
}

impl Graph {
    /// Creates a graph with [`Node::UNIFORM`] only.
    pub(super) fn new() -> Self {
        Self { kinds: vec![Kind::Plain], first: vec![NONE], edges: Vec::new() }
    }

    pub(super) fn add(&mut self, kind: Kind) -> Node {
        let node = Node(self.kinds.len() as u32);
        self.kinds.push(kind);
        self.first.push(NONE);
        node
    }

    pub(super) fn source(&mut self, scope: Scope, span: Span, origin: Origin) -> Node {
        self.add(Kind::Source(Source { scope, span, origin }))
    }

    /// Adds a dependence of a node.
    pub(super) fn add_edge(&mut self, from: Node, to: Node) {
        if to != Node::UNIFORM && to != from {
            self.edges.push((to, self.first[from.index()]));
            self.first[from.index()] = self.edges.len() as u32 - 1;
        }
    }

    /// Returns a node that depends on all of the nodes.
    pub(super) fn join(&mut self, nodes: &[Node]) -> Node {
        let mut distinct = nodes.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        distinct.retain(|node| *node != Node::UNIFORM);
        match distinct[..] {
            [] => Node::UNIFORM,
            [only] => only,
            _ => self.add_dependent(&distinct),
        }
    }

    /// Returns a new node that depends on all of the nodes.
    pub(super) fn add_dependent(&mut self, nodes: &[Node]) -> Node {
        let node = self.add(Kind::Plain);
        nodes.iter().for_each(|on| self.add_edge(node, *on));
        node
    }

    pub(super) fn kind(&self, node: Node) -> Kind {
        self.kinds[node.index()]
    }

    /// Returns the direct dependences of a node.
    fn dependences(&self, node: Node) -> impl Iterator<Item = Node> + '_ {
        let mut at = self.first[node.index()];
        std::iter::from_fn(move || {
            let (to, next) = *self.edges.get(at as usize)?;
            at = next;
            Some(to)
        })
    }

    /// Returns the scope of each node, given that the inputs are uniform: sources are propagated
    /// against the edges.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        let count = self.kinds.len();
        // The nodes that depend on each node, as concatenated lists.
        let mut starts = vec![0usize; count + 1];
        self.edges.iter().for_each(|(to, _)| starts[to.index() + 1] += 1);
        (0..count).for_each(|at| starts[at + 1] += starts[at]);
        let (mut next_slots, mut dependent) = (starts.clone(), vec![Node(0); self.edges.len()]);
        for from in (0..count as u32).map(Node) {
            for to in self.dependences(from) {
                dependent[next_slots[to.index()]] = from;
                next_slots[to.index()] += 1;
            }
        }
        let mut scopes = vec![Scope::Workgroup; count];
        let mut worklist = Vec::new();
        for at in (0..count as u32).map(Node) {
            if let Kind::Source(source) = self.kind(at) {
                scopes[at.index()] = source.scope;
                worklist.push(at);
            }
        }
        while let Some(node) = worklist.pop() {
            let scope = scopes[node.index()];
            for from in &dependent[starts[node.index()]..starts[node.index() + 1]] {
                if scopes[from.index()] < scope {
                    scopes[from.index()] = scope;
                    worklist.push(*from);
                }
            }
        }
        scopes
    }
}

/// A breadth-first search along dependences. Nodes that an earlier call of `visit` has reached are
/// skipped.
pub(super) struct Search<'a> {
    graph: &'a Graph,
    /// For each visited node its predecessor; the node itself at the start of a search.
    predecessors: Vec<u32>,
}

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a Graph) -> Self {
        Self { graph, predecessors: vec![NONE; graph.kinds.len()] }
    }

    /// Calls `is_last` with `start` and each node that it depends on, until `is_last` returns true.
    pub(super) fn visit(&mut self, start: Node, is_last: &mut dyn FnMut(&Self, Node) -> bool) {
        if self.predecessors[start.index()] != NONE {
            return;
        }
        self.predecessors[start.index()] = start.0;
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if is_last(self, node) {
                return;
            }
            for on in self.graph.dependences(node) {
                if self.predecessors[on.index()] == NONE {
                    self.predecessors[on.index()] = node.0;
                    queue.push_back(on);
                }
            }
        }
    }

    /// Returns the condition nearest to the start of the search, on the path to a visited node.
    pub(super) fn condition(&self, visited: Node) -> Option<Span> {
        let (mut node, mut nearest) = (visited, None);
        loop {
            let before = Node(self.predecessors[node.index()]);
            if before == node {
                return nearest;
            }
            if let Kind::Branch { condition, on } = self.graph.kind(before)
                && on == node
            {
                nearest = Some(condition);
            }
            node = before;
        }
    }
}
