//! Dependences of expressions and of the results of calls.

use naga::{
    AddressSpace, Binding, BuiltIn, Expression, Function, Handle, Module, Span, StorageAccess,
    TypeInner,
};

use super::graph::{Graph, Kind, Node, Origin, Scope};
use super::summary::{Dependence, Need, Requirement, Site};
use super::walk::{Expr, Root, Walk};
use crate::wgsl::naga::handles;

impl<'a> Walk<'a> {
    /// Evaluates an expression at its statement.
    pub(super) fn evaluate(&mut self, expression: Expr, flow: Node) {
        let span = self.function.expressions.get_span(expression);
        let unsupported =
            |walk: &mut Self| walk.graph.source(Scope::Invocation, span, Origin::Other);
        let value = match self.function.expressions[expression] {
            Expression::Load { pointer } => self.load(pointer, span),
            Expression::AccessIndex { base, index } => match self.builtin_member(base, index) {
                Some(binding) => builtin(&mut self.graph, binding, span),
                None => self.values[base.index()],
            },
            // The length of a buffer is uniform.
            Expression::ArrayLength(_) => Node::UNIFORM,
            Expression::CooperativeLoad { ref data, .. } => {
                let name = if data.row_major { "coopLoadT" } else { "coopLoad" };
                self.require(Scope::Subgroup, Need::ControlFlow, flow, Site { span, name });
                self.operands(expression)
            }
            Expression::CooperativeMultiplyAdd { .. } => {
                let site = Site { span, name: "coopMultiplyAdd" };
                self.require(Scope::Subgroup, Need::ControlFlow, flow, site);
                self.operands(expression)
            }
            Expression::ImageSample { .. }
            | Expression::ImageLoad { .. }
            | Expression::Derivative { .. }
            | Expression::RayQueryVertexPositions { .. }
            | Expression::RayQueryGetIntersection { .. } => unsupported(self),
            _ => self.operands(expression),
        };
        self.values[expression.index()] = value;
    }

    /// Returns a node that depends on all operands of an expression.
    fn operands(&mut self, expression: Expr) -> Node {
        let mut operands = Vec::new();
        let mut copy = self.function.expressions[expression].clone();
        handles::in_expression(&mut copy, &mut |operand| {
            operands.push(self.values[operand.index()]);
        });
        self.graph.join(&operands)
    }

    /// Returns the builtin of a member of a structure argument of the entry point.
    fn builtin_member(&self, base: Expr, index: u32) -> Option<&'a Binding> {
        let Expression::FunctionArgument(at) = self.function.expressions[base] else { return None };
        // Built-in attributes of parameters apply to entry points only.
        if !self.is_entry {
            return None;
        }
        let ty = self.function.arguments[at as usize].ty;
        match &self.context.module.types[ty].inner {
            TypeInner::Struct { members, .. } => members.get(index as usize)?.binding.as_ref(),
            _ => None,
        }
    }

    fn load(&mut self, pointer: Expr, span: Span) -> Node {
        let indices = self.values[pointer.index()];
        match self.roots[pointer.index()] {
            Root::Variable(variable) => {
                let content = self.variables.get(variable);
                self.graph.join(&[content, indices])
            }
            Root::Global(global) if self.is_read_only(global) => indices,
            Root::Global(global) => {
                self.graph.source(Scope::Invocation, span, Origin::Memory(global))
            }
            Root::None => self.graph.source(Scope::Invocation, span, Origin::Private),
        }
    }

    /// Returns whether a variable is a buffer or the immediates, and the kernel does not write it.
    fn is_read_only(&self, global: Handle<naga::GlobalVariable>) -> bool {
        match self.context.module.global_variables[global].space {
            AddressSpace::Uniform | AddressSpace::Immediate => true,
            AddressSpace::Storage { access } => {
                !access.contains(StorageAccess::STORE) || !self.context.written[global.index()]
            }
            _ => false,
        }
    }

    /// Processes a call: the callee's requirements apply here, and its results depend on the
    /// arguments and on the control flow of the call.
    pub(super) fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Expr],
        result: Option<Expr>,
        call: Span,
        flow: Node,
    ) {
        let context = self.context;
        let summary = &context.summaries[callee.index()];
        let inputs = self.input_nodes(callee, arguments, call, flow);
        for needed in &summary.requirements {
            let node = inputs[needed.input as usize];
            if node != Node::UNIFORM {
                self.requirements.push(Requirement {
                    node,
                    scope: needed.scope,
                    need: needed.need,
                    site: needed.site,
                    condition: needed.condition,
                    call: Some(call),
                });
            }
        }
        if let Some(result) = result {
            self.values[result.index()] = self.dependence_node(&summary.result, &inputs);
        }
        for (argument, content) in arguments.iter().zip(&summary.contents) {
            if let Some(content) = content {
                let value = self.dependence_node(content, &inputs);
                self.assign(*argument, value, Node::UNIFORM);
            }
        }
    }

    /// Returns the node of each input of a called function.
    fn input_nodes(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Expr],
        call: Span,
        flow: Node,
    ) -> Vec<Node> {
        let context = self.context;
        let summary = &context.summaries[callee.index()];
        let mut inputs = vec![flow];
        inputs.extend(arguments.iter().map(|argument| self.values[argument.index()]));
        for (at, argument) in arguments.iter().enumerate() {
            let root = self.roots[argument.index()];
            let Root::Variable(variable) = root else {
                inputs.push(Node::UNIFORM);
                continue;
            };
            // The analysis assumes that pointers do not alias: it does not see a write through one
            // in loads through another.
            let is_alias = |other: usize| {
                let is_written = summary.contents[other].is_some();
                other != at && is_written && self.roots[arguments[other].index()] == root
            };
            if (0..arguments.len()).any(is_alias) {
                let alias = self.graph.source(Scope::Invocation, call, Origin::Alias);
                let site = Site { span: call, name: "this call" };
                self.require(Scope::Workgroup, Need::NoAlias, alias, site);
            }
            inputs.push(self.variables.get(variable));
        }
        inputs
    }

    /// Returns a node with the dependences of a function's result, for these inputs.
    fn dependence_node(&mut self, dependence: &Dependence, inputs: &[Node]) -> Node {
        let nodes = dependence.inputs.iter().map(|input| inputs[*input as usize]);
        let mut nodes: Vec<Node> = nodes.collect();
        if let Some(source) = dependence.source {
            nodes.push(self.graph.add(Kind::Source(source)));
        }
        self.graph.join(&nodes)
    }
}

/// Returns the node of a builtin value.
pub(super) fn builtin(graph: &mut Graph, binding: &Binding, span: Span) -> Node {
    let scope = match binding {
        Binding::BuiltIn(
            BuiltIn::WorkGroupId
            | BuiltIn::NumWorkGroups
            | BuiltIn::WorkGroupSize
            | BuiltIn::NumSubgroups
            | BuiltIn::SubgroupSize,
        ) => return Node::UNIFORM,
        Binding::BuiltIn(BuiltIn::SubgroupId) => Scope::Subgroup,
        _ => Scope::Invocation,
    };
    graph.source(scope, span, Origin::Builtin)
}

/// Returns the root variable of each expression of a function, if it is a pointer.
pub(super) fn roots(module: &Module, function: &Function) -> Vec<Root> {
    let locals = function.local_variables.len() as u32;
    let mut roots: Vec<Root> = Vec::with_capacity(function.expressions.len());
    for (_, expression) in function.expressions.iter() {
        roots.push(match *expression {
            Expression::LocalVariable(local) => Root::Variable(Walk::local_number(local)),
            Expression::GlobalVariable(global) => Root::Global(global),
            Expression::FunctionArgument(at) => {
                let ty = function.arguments[at as usize].ty;
                match module.types[ty].inner.pointer_space() {
                    Some(AddressSpace::Function) => Root::Variable(locals + at),
                    _ => Root::None,
                }
            }
            Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                roots[base.index()]
            }
            _ => Root::None,
        });
    }
    roots
}
