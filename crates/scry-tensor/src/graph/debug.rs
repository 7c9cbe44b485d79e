//! The stages of a graph's compilation as text: `SCRY_DEBUG=graph,simplify,group,plan` prints them
//! on standard error.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::bound_graph::BoundGraph;
use super::grouped::{Grouped, Origin, Work};
use super::node::Content;
use super::plan::{MemoryPlan, Slot};
use super::simplify::Applied;
use crate::op::{Computed, Join, Op};

/// A stage that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Graph,
    Simplify,
    Group,
    Plan,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Graph, Self::Simplify, Self::Group, Self::Plan];

    fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Simplify => "simplify",
            Self::Group => "group",
            Self::Plan => "plan",
        }
    }
}

/// Prints a stage if `SCRY_DEBUG` names it.
pub(crate) fn print(stage: Stage, text: impl FnOnce() -> String) {
    static SELECTED: OnceLock<Vec<Stage>> = OnceLock::new();
    let selected = SELECTED.get_or_init(|| {
        let value = std::env::var_os("SCRY_DEBUG").unwrap_or_default();
        let value = value.to_string_lossy().into_owned();
        let stages = value.split(':').next().unwrap_or_default();
        let is_named = |stage: &Stage| stages.split(',').any(|it| it.trim() == stage.name());
        Stage::ALL.into_iter().filter(is_named).collect()
    });
    if selected.contains(&stage) {
        eprint!("scry: stage {}\n{}", stage.name(), text());
    }
}

/// Returns a short text of what a node is.
pub(crate) fn content(content: &Content) -> String {
    match content {
        Content::Input(n) => format!("input {n}"),
        Content::Param(n) => format!("param {n}"),
        Content::Const(_, _, bits) => format!("const {bits:#x}"),
        Content::Kernel(n) => format!("custom kernel {n}"),
        Content::Part(n) => format!("output {n}"),
        Content::State(n) => format!("state {n}"),
        Content::Write(_) => "write".to_owned(),
        Content::Op(op) => match op {
            Op::Map(map, _) => format!("map of {} steps", map.scalars.len()),
            Op::View(view) => format!("view {}", view.name()),
            Op::Gather(selection) => format!("gather along axis {}", selection.axis),
            Op::Join(Join::Concat { .. }) => "concat".to_owned(),
            Op::Join(Join::Pad { .. }) => "pad".to_owned(),
            Op::Join(Join::Roll { .. }) => "roll".to_owned(),
            Op::Computed(Computed::Address(_)) => "positions of indices".to_owned(),
            Op::Computed(Computed::Random(_)) => "random numbers".to_owned(),
            Op::Library(library) => library.name().to_owned(),
        },
    }
}

/// Returns a graph as text, a node a line.
pub(crate) fn graph(graph: &BoundGraph) -> String {
    let mut text = String::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let sources: Vec<String> = node.sources.iter().map(|it| format!("%{}", it.0)).collect();
        let (what, at) = (content(&node.content), node.call.at);
        let _ = writeln!(
            text,
            "  %{n} = {what} ({}) : {} {}  # {} ({}:{}) {}",
            sources.join(", "),
            node.dtype,
            node.shape,
            node.call.op,
            at.file(),
            at.line(),
            node.scope
        );
    }
    let outputs: Vec<String> = graph.outputs.iter().map(|it| format!("%{}", it.0)).collect();
    let _ = writeln!(text, "  outputs {}", outputs.join(", "));
    text
}

/// Returns the rules that were applied, and the graph that they made.
pub(crate) fn simplified(new: &BoundGraph, applied: &Applied) -> String {
    let mut text = String::new();
    for (rule, count) in applied {
        let _ = writeln!(text, "  {count} x {rule}");
    }
    text + &graph(new)
}

/// Returns the kernels as text.
pub(crate) fn grouped(grouped: &Grouped) -> String {
    let mut text = String::new();
    for (n, kernel) in grouped.kernels.iter().enumerate() {
        let nodes: Vec<String> = kernel.nodes.iter().map(|it| format!("%{}", it.0)).collect();
        let operands: Vec<String> =
            kernel.operands().iter().map(|it| format!("b{}", it.0)).collect();
        let what = match &kernel.work {
            Work::Map { map, .. } => format!("map of {} steps", map.scalars.len()),
            Work::Maps(parts) => format!("{} maps", parts.len()),
            Work::Rows(work) => format!("rows in {} steps", work.program.steps.len()),
            Work::Library { library, .. } => library.name().to_owned(),
            Work::Custom { kernel, .. } => {
                kernel.as_ref().map(|it| format!("{it:?}")).unwrap_or_default()
            }
            Work::Write { .. } | Work::WriteRows { .. } => "write".to_owned(),
        };
        let _ = writeln!(
            text,
            "  kernel {n}: b{} = {what}({}) computes {}; stored: {}",
            kernel.result.0,
            operands.join(", "),
            nodes.join(", "),
            kernel.reason
        );
    }
    text
}

/// Returns the memory of buffers as text.
pub(crate) fn memory(grouped: &Grouped, plan: &MemoryPlan) -> String {
    let mut text = String::new();
    for (n, info) in grouped.buffers.iter().enumerate() {
        let place = place(info.origin, plan.slots[n]);
        let _ = writeln!(text, "  b{n}: {} bytes, {place}", info.bytes);
    }
    for (n, operand) in plan.in_place.iter().enumerate() {
        if let Some(operand) = operand {
            let _ = writeln!(text, "  kernel {n} replaces its operand {operand}");
        }
    }
    let _ = writeln!(text, "  arenas {:?}, {} bytes in use at one time", plan.arenas, plan.peak);
    text
}

/// Returns where a buffer is.
pub(crate) fn place(origin: Origin, slot: Option<Slot>) -> String {
    match (origin, slot) {
        (Origin::Input(input), _) => format!("input {input}"),
        (Origin::Param(param), _) => format!("param {param}"),
        (Origin::Output, _) => "output".to_owned(),
        (Origin::Constant, _) => "constant".to_owned(),
        (Origin::State(state), _) => format!("state {state}"),
        (Origin::Result, Some(slot)) => format!("arena {} at {}", slot.arena, slot.offset),
        (Origin::Result, None) => "empty".to_owned(),
    }
}
