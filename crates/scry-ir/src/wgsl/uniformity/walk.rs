//! The control flow of one function, statement by statement.
//!
//! Control flow is a node like any value: under a condition it depends on the condition, and after
//! a statement by which some invocations may have left it depends on the conditions of these exits,
//! until they reconverge: after the loop or switch for `break` and `continue`, after the call for
//! `return`.

use naga::{
    Barrier, Block, CollectiveOperation, Expression, Function, GatherMode, Handle, LocalVariable,
    Module, RayQueryFunction, Span, Statement, SubgroupOperation, SwitchCase,
};

use super::graph::{Graph, Kind, Node, Origin, Scope};
use super::summary::{Need, Requirement, Site, Summary};
use super::values;
use super::variables::{Changes, Variables};

pub(super) type Expr = Handle<Expression>;

/// The root of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// Not a pointer, or not to a variable of the function.
    None,
    /// A variable, by number: local variables, then the pointees of arguments.
    Variable(u32),
    Global(Handle<naga::GlobalVariable>),
}

/// State that all functions of a kernel share.
pub(super) struct Context<'a> {
    pub(super) module: &'a Module,
    /// For each global variable whether the kernel writes it.
    pub(super) written: Vec<bool>,
    /// Summaries of the functions before this one.
    pub(super) summaries: Vec<Summary>,
}

/// An open loop or switch.
struct Frame {
    is_loop: bool,
    /// The state of the variables at its start.
    mark: usize,
    breaks: Vec<Changes>,
    continues: Vec<Changes>,
}

/// The control flow of invocations that exit early, by the kind of exit.
#[derive(Debug, Clone, Copy)]
struct EarlyExits {
    breaks: Node,
    continues: Node,
    returns: Node,
}

impl EarlyExits {
    const NONE: Self =
        Self { breaks: Node::UNIFORM, continues: Node::UNIFORM, returns: Node::UNIFORM };

    fn add(&mut self, graph: &mut Graph, other: Self) {
        self.breaks = graph.join(&[self.breaks, other.breaks]);
        self.continues = graph.join(&[self.continues, other.continues]);
        self.returns = graph.join(&[self.returns, other.returns]);
    }
}

/// The state at the end of a statement.
struct StatementEnd {
    /// The control flow after it, for invocations that reach it.
    flow: Node,
    /// Whether it is reachable.
    reachable: bool,
    exits: EarlyExits,
}

/// The traversal of one function.
pub(super) struct Walk<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) function: &'a Function,
    pub(super) graph: Graph,
    pub(super) variables: Variables,
    /// For each expression its value; for a pointer, its indices.
    pub(super) values: Vec<Node>,
    pub(super) roots: Vec<Root>,
    pub(super) requirements: Vec<Requirement>,
    /// The dependence of the return value.
    pub(super) result: Node,
    /// The contents of pointer arguments on return.
    pub(super) contents: Vec<Node>,
    /// For each variable whether it is assigned.
    pub(super) assigned: Vec<bool>,
    /// Whether this is the entry point, whose arguments are builtins.
    pub(super) is_entry: bool,
    /// Whether subgroup operations have to be in uniform control flow.
    pub(super) checks_subgroup_operations: bool,
    frames: Vec<Frame>,
}

impl<'a> Walk<'a> {
    /// Creates the traversal. `pointees` are the contents of the pointer arguments at the call.
    pub(super) fn new(
        context: &'a Context<'a>,
        function: &'a Function,
        mut graph: Graph,
        pointees: Vec<Node>,
        budget: usize,
    ) -> Self {
        let locals = function.local_variables.len();
        let mut initial = vec![Node::UNIFORM; locals];
        initial.extend(pointees);
        let contents = initial[locals..].iter().map(|_| graph.add(Kind::Plain)).collect();
        Self {
            context,
            function,
            result: graph.add(Kind::Plain),
            contents,
            assigned: vec![false; initial.len()],
            variables: Variables::new(initial, budget),
            values: vec![Node::UNIFORM; function.expressions.len()],
            roots: values::roots(context.module, function),
            requirements: Vec::new(),
            is_entry: false,
            checks_subgroup_operations: false,
            frames: Vec::new(),
            graph,
        }
    }

    /// Analyses the whole function, which `flow` enters.
    pub(super) fn run(&mut self, flow: Node) {
        let end = self.block(&self.function.body, flow);
        if end.reachable {
            self.record_return(None, end.flow);
        }
    }

    fn block(&mut self, block: &'a Block, mut flow: Node) -> StatementEnd {
        let mut exits = EarlyExits::NONE;
        for (statement, span) in block.span_iter() {
            let end = self.statement(statement, *span, flow);
            exits.add(&mut self.graph, end.exits);
            flow = end.flow;
            if !end.reachable {
                return StatementEnd { flow, reachable: false, exits };
            }
        }
        StatementEnd { flow, reachable: true, exits }
    }

    fn statement(&mut self, statement: &'a Statement, span: Span, flow: Node) -> StatementEnd {
        let mut exits = EarlyExits::NONE;
        match statement {
            Statement::Block(block) => return self.block(block, flow),
            Statement::If { condition, accept, reject } => {
                return self.if_else(*condition, accept, reject, flow);
            }
            Statement::Switch { selector, cases } => return self.switch(*selector, cases, flow),
            Statement::Loop { body, continuing, break_if } => {
                return self.loop_statement(body, continuing, *break_if, flow);
            }
            Statement::Break => {
                exits.breaks = flow;
                if let Some(frame) = self.frames.last_mut() {
                    frame.breaks.push(self.variables.changes(frame.mark));
                }
            }
            Statement::Continue => {
                exits.continues = flow;
                if let Some(frame) = self.frames.iter_mut().rev().find(|frame| frame.is_loop) {
                    frame.continues.push(self.variables.changes(frame.mark));
                }
            }
            Statement::Return { value } => {
                exits.returns = flow;
                self.record_return(*value, flow);
            }
            Statement::Kill => exits.returns = flow,
            other => {
                self.simple_statement(other, span, flow);
                return StatementEnd { flow, reachable: true, exits };
            }
        }
        StatementEnd { flow, reachable: false, exits }
    }

    /// Records what the caller sees after a return: the result and the pointees.
    fn record_return(&mut self, value: Option<Expr>, flow: Node) {
        if let Some(value) = value {
            self.graph.add_edge(self.result, self.values[value.index()]);
        }
        self.graph.add_edge(self.result, flow);
        let locals = self.function.local_variables.len();
        for (at, content) in self.contents.iter().enumerate() {
            self.graph.add_edge(*content, self.variables.get((locals + at) as u32));
        }
    }

    /// Returns the control flow under a condition.
    fn branch(&mut self, condition: Expr, flow: Node) -> Node {
        let on = self.values[condition.index()];
        if on == Node::UNIFORM {
            return flow;
        }
        let span = self.function.expressions.get_span(condition);
        let branch = self.graph.add(Kind::Branch { condition: span, on });
        self.graph.add_edge(branch, on);
        self.graph.add_edge(branch, flow);
        branch
    }

    fn if_else(
        &mut self,
        condition: Expr,
        accept: &'a Block,
        reject: &'a Block,
        flow: Node,
    ) -> StatementEnd {
        let branch = self.branch(condition, flow);
        let mark = self.variables.mark();
        let mut exits = EarlyExits::NONE;
        let mut paths = Vec::new();
        for block in [accept, reject] {
            let end = self.block(block, branch);
            exits.add(&mut self.graph, end.exits);
            if end.reachable {
                paths.push(self.variables.changes(mark));
            }
            self.variables.restore(mark);
        }
        self.variables.merge(&mut self.graph, &paths);
        let flow = self.graph.join(&[flow, exits.breaks, exits.continues, exits.returns]);
        StatementEnd { flow, reachable: !paths.is_empty(), exits }
    }

    fn switch(&mut self, selector: Expr, cases: &'a [SwitchCase], flow: Node) -> StatementEnd {
        let branch = self.branch(selector, flow);
        let mark = self.push_frame(false);
        let mut exits = EarlyExits::NONE;
        let (mut paths, mut fall_through) = (Vec::new(), None);
        for case in cases {
            if let Some(changes) = fall_through.take() {
                self.variables.merge(&mut self.graph, &[Vec::new(), changes]);
            }
            let end = self.block(&case.body, branch);
            exits.add(&mut self.graph, end.exits);
            let changes = end.reachable.then(|| self.variables.changes(mark));
            self.variables.restore(mark);
            if case.fall_through {
                fall_through = changes;
            } else {
                paths.extend(changes);
            }
        }
        paths.extend(self.pop_frame().breaks);
        self.variables.merge(&mut self.graph, &paths);
        let exits = EarlyExits { breaks: Node::UNIFORM, ..exits };
        let flow = self.graph.join(&[flow, exits.continues, exits.returns]);
        StatementEnd { flow, reachable: !paths.is_empty(), exits }
    }

    fn push_frame(&mut self, is_loop: bool) -> usize {
        let mark = self.variables.mark();
        self.frames.push(Frame { is_loop, mark, breaks: Vec::new(), continues: Vec::new() });
        mark
    }

    fn pop_frame(&mut self) -> Frame {
        self.frames.pop().expect("each loop and switch is closed once")
    }

    fn loop_statement(
        &mut self,
        body: &'a Block,
        continuing: &'a Block,
        break_if: Option<Expr>,
        flow: Node,
    ) -> StatementEnd {
        let head = self.graph.add_dependent(&[flow]);
        let mut changing = Vec::new();
        self.collect_assigned(body, &mut changing);
        self.collect_assigned(continuing, &mut changing);
        changing.sort_unstable();
        changing.dedup();
        let mut phis = Vec::with_capacity(changing.len());
        for variable in changing {
            let phi = self.graph.add_dependent(&[self.variables.get(variable)]);
            self.variables.set(variable, phi);
            phis.push((variable, phi));
        }
        let mark = self.push_frame(true);
        let end = self.block(body, head);
        let mut exits = end.exits;
        let mut next_iterations =
            self.frames.last_mut().map_or(Vec::new(), |f| std::mem::take(&mut f.continues));
        if end.reachable {
            next_iterations.push(self.variables.changes(mark));
        }
        self.variables.restore(mark);
        if !next_iterations.is_empty() {
            self.variables.merge(&mut self.graph, &next_iterations);
            let flow = self.graph.join(&[head, exits.breaks, exits.continues, exits.returns]);
            let next = self.continuing(continuing, break_if, mark, flow);
            exits.add(&mut self.graph, next.exits);
            self.graph.add_edge(head, next.flow);
            for (variable, phi) in phis {
                self.graph.add_edge(phi, self.variables.get(variable));
            }
            self.variables.restore(mark);
        }
        let paths = self.pop_frame().breaks;
        self.variables.merge(&mut self.graph, &paths);
        // Invocations that enter a loop without a `break` do not reach the code after it.
        let endless = if paths.is_empty() { head } else { Node::UNIFORM };
        let returns = self.graph.join(&[exits.returns, endless]);
        let exits = EarlyExits { returns, ..EarlyExits::NONE };
        let flow = self.graph.join(&[flow, exits.returns]);
        StatementEnd { flow, reachable: !paths.is_empty(), exits }
    }

    /// Processes the `continuing` block of a loop; returns the control flow that enters the next
    /// iteration.
    fn continuing(
        &mut self,
        block: &'a Block,
        break_if: Option<Expr>,
        mark: usize,
        flow: Node,
    ) -> StatementEnd {
        let mut end = self.block(block, flow);
        if let Some(condition) = break_if {
            end.flow = self.branch(condition, end.flow);
            let changes = self.variables.changes(mark);
            if let Some(frame) = self.frames.last_mut() {
                frame.breaks.push(changes);
            }
        }
        end
    }

    /// Collects the variables that a block may assign, possibly with duplicates.
    fn collect_assigned(&self, block: &Block, out: &mut Vec<u32>) {
        let mut add = |pointer: Expr| {
            if let Root::Variable(variable) = self.roots[pointer.index()] {
                out.push(variable);
            }
        };
        for statement in block {
            match statement {
                Statement::Store { pointer, .. } => add(*pointer),
                Statement::Call { arguments, .. } => arguments.iter().copied().for_each(&mut add),
                Statement::CooperativeStore { data, .. } => add(data.pointer),
                Statement::Atomic { pointer, .. } => add(*pointer),
                _ => {}
            }
        }
        for statement in block {
            match statement {
                Statement::Block(inner) => self.collect_assigned(inner, out),
                Statement::If { accept, reject, .. } => {
                    self.collect_assigned(accept, out);
                    self.collect_assigned(reject, out);
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().for_each(|case| self.collect_assigned(&case.body, out));
                }
                Statement::Loop { body, continuing, .. } => {
                    self.collect_assigned(body, out);
                    self.collect_assigned(continuing, out);
                }
                _ => {}
            }
        }
    }

    /// Processes a statement other than control flow.
    fn simple_statement(&mut self, statement: &'a Statement, span: Span, flow: Node) {
        match *statement {
            Statement::Emit(ref range) => {
                for expression in range.clone() {
                    self.evaluate(expression, flow);
                }
            }
            Statement::Store { pointer, value } => {
                self.assign(pointer, self.values[value.index()], flow);
            }
            Statement::ControlBarrier(barrier) => self.barrier(barrier, span, flow),
            Statement::WorkGroupUniformLoad { pointer, .. } => {
                let site = Site { span, name: "workgroupUniformLoad" };
                self.require(Scope::Workgroup, Need::ControlFlow, flow, site);
                let value = self.values[pointer.index()];
                self.require(Scope::Workgroup, Need::Pointer, value, site);
            }
            Statement::CooperativeStore { ref data, .. } => {
                let name = if data.row_major { "coopStoreT" } else { "coopStore" };
                let site = Site { span, name };
                self.require(Scope::Subgroup, Need::ControlFlow, flow, site);
                let stored = self.graph.source(Scope::Invocation, span, Origin::Other);
                self.assign(data.pointer, stored, flow);
            }
            Statement::Atomic { result: Some(result), .. } => {
                self.values[result.index()] =
                    self.graph.source(Scope::Invocation, span, Origin::Atomic);
            }
            Statement::Call { function, ref arguments, result } => {
                self.call(function, arguments, result, span, flow);
            }
            Statement::RayQuery { fun: RayQueryFunction::Proceed { result }, .. } => {
                self.values[result.index()] =
                    self.graph.source(Scope::Invocation, span, Origin::Other);
            }
            ref other => self.subgroup_operation(other, span, flow),
        }
    }

    /// Processes a subgroup operation. A result that is the same for all lanes is uniform over the
    /// subgroup if the control flow is.
    fn subgroup_operation(&mut self, statement: &'a Statement, span: Span, flow: Node) {
        let (result, is_same) = match *statement {
            Statement::SubgroupBallot { result, .. } => (result, true),
            Statement::SubgroupGather { ref mode, result, .. } => {
                (result, matches!(mode, GatherMode::BroadcastFirst | GatherMode::Broadcast(_)))
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, result, .. } => {
                let votes = matches!(op, SubgroupOperation::All | SubgroupOperation::Any);
                (result, votes || collective_op == CollectiveOperation::Reduce)
            }
            _ => return,
        };
        let scope = if is_same { Scope::Subgroup } else { Scope::Invocation };
        let source = self.graph.source(scope, span, Origin::Subgroup);
        self.values[result.index()] = self.graph.join(&[source, flow]);
        if self.checks_subgroup_operations {
            let site = Site { span, name: "a subgroup operation" };
            self.require(Scope::Subgroup, Need::ControlFlow, flow, site);
        }
    }

    fn barrier(&mut self, barrier: Barrier, span: Span, flow: Node) {
        let (scope, name) = if barrier.contains(Barrier::WORK_GROUP) {
            (Scope::Workgroup, "workgroupBarrier")
        } else if barrier.contains(Barrier::TEXTURE) {
            (Scope::Workgroup, "textureBarrier")
        } else if barrier.contains(Barrier::SUB_GROUP) {
            (Scope::Subgroup, "subgroupBarrier")
        } else {
            (Scope::Workgroup, "storageBarrier")
        };
        if scope == Scope::Workgroup || self.checks_subgroup_operations {
            self.require(scope, Need::ControlFlow, flow, Site { span, name });
        }
    }

    /// Records a uniformity requirement.
    pub(super) fn require(&mut self, scope: Scope, need: Need, node: Node, site: Site) {
        if node != Node::UNIFORM {
            self.requirements.push(Requirement {
                node,
                scope,
                need,
                site,
                condition: None,
                call: None,
            });
        }
    }

    /// Assigns a value to a variable or a part of it.
    pub(super) fn assign(&mut self, pointer: Expr, value: Node, flow: Node) {
        let Root::Variable(variable) = self.roots[pointer.index()] else { return };
        let is_whole_variable = matches!(
            self.function.expressions[pointer],
            Expression::LocalVariable(_) | Expression::FunctionArgument(_)
        );
        let before = if is_whole_variable { Node::UNIFORM } else { self.variables.get(variable) };
        let dependences = [value, flow, before, self.values[pointer.index()]];
        // Not the node of the control flow itself, whose condition would be reported as that of the
        // value.
        let node = match self.graph.join(&dependences) {
            node if node == flow && node != Node::UNIFORM => self.graph.add_dependent(&[flow]),
            node => node,
        };
        self.variables.set(variable, node);
        self.assigned[variable as usize] = true;
    }

    /// Returns the number of a local variable.
    pub(super) fn local_number(local: Handle<LocalVariable>) -> u32 {
        local.index() as u32
    }
}
