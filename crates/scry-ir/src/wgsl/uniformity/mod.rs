//! Rejects barriers that only some invocations of a workgroup may reach.
//!
//! A barrier in control flow that is not uniform is undefined behaviour on GPUs, and a shader error
//! in WGSL. This is WGSL's analysis of uniformity: each function becomes a graph in which values
//! and control flow depend on each other (`walk.rs`, `values.rs`, `variables.rs`), and no barrier
//! may depend on anything that differs between invocations (`graph.rs`). Calls are analysed through
//! a summary of the called function (`summary.rs`), so that the work grows with the size of the
//! source, not with the number of calls.
//!
//! It accepts every kernel that WGSL accepts, and more: buffers that the kernel never writes are
//! read-only regardless of their declaration, and each member of a structure of builtins is
//! analysed separately.
//!
//! Barriers and `workgroupUniformLoad` must be uniform over the workgroup, cooperative matrices
//! over the subgroup. Subgroup operations are well defined for the active lanes; they must be
//! uniform only if the source requests it with `diagnostic(error, subgroup_uniformity);`.

mod graph;
mod report;
mod summary;
#[cfg(test)]
mod tests;
mod values;
mod variables;
mod walk;

use graph::{Graph, Kind, Node};
use naga::diagnostic_filter::{FilterableTriggeringRule, Severity};
use naga::valid::{GlobalUse, ModuleInfo};
use naga::{Barrier, Block, EntryPoint, Expression, Function, Module, Statement, TypeInner};
use summary::Summary;
use walk::{Context, Walk};

use crate::wgsl::naga::handles;
use crate::wgsl::report::Report;

/// Maximum number of assignments processed at control-flow joins, of all functions together: bounds
/// time and memory for hostile sources.
const MAX_ASSIGNMENTS: usize = 1 << 23;

/// Rejects a kernel with an operation that needs uniform control flow and may not have it. `info`
/// is the validator's result for this module.
pub(crate) fn check(module: &Module, info: &ModuleInfo) -> Result<(), Box<Report>> {
    let needs_any =
        |function: &&Function| needs_any(function, requires_subgroup_uniformity(module, function));
    if !handles::functions(module).iter().any(needs_any) {
        return Ok(());
    }
    let [entry] = &module.entry_points[..] else { return Ok(()) };
    let uses = info.get_entry_point(0);
    let written = module.global_variables.iter();
    let written = written
        .map(|(global, _)| uses[global].intersects(GlobalUse::WRITE | GlobalUse::ATOMIC))
        .collect();
    let mut context = Context { module, written, summaries: Vec::new() };
    let mut budget = MAX_ASSIGNMENTS;
    for (handle, function) in module.functions.iter() {
        let walk = analyse_function(&context, function, budget);
        budget = walk.variables.remaining_budget();
        if budget == 0 {
            return Err(report::too_complex(module.functions.get_span(handle)));
        }
        report::check_requirements(&walk)?;
        let summary = Summary::from_walk(&walk);
        context.summaries.push(summary);
    }
    let walk = analyse_entry_point(&context, entry, budget);
    if walk.variables.remaining_budget() == 0 {
        return Err(report::too_complex(naga::Span::UNDEFINED));
    }
    report::check_requirements(&walk)
}

/// Analyses a function for arbitrary arguments.
fn analyse_function<'a>(
    context: &'a Context<'a>,
    function: &'a Function,
    budget: usize,
) -> Walk<'a> {
    let mut graph = Graph::new();
    // The inputs: control flow, values of arguments, contents of pointer arguments.
    let count = function.arguments.len() as u32;
    let inputs: Vec<Node> = (0..=2 * count).map(|at| graph.add(Kind::Input(at))).collect();
    let (values, contents) = inputs[1..].split_at(count as usize);
    let mut walk = Walk::new(context, function, graph, contents.to_vec(), budget);
    walk.checks_subgroup_operations = requires_subgroup_uniformity(context.module, function);
    for (handle, expression) in function.expressions.iter() {
        if let Expression::FunctionArgument(at) = *expression {
            walk.values[handle.index()] = values[at as usize];
        }
    }
    walk.run(inputs[0]);
    walk
}

/// Analyses the entry point.
fn analyse_entry_point<'a>(
    context: &'a Context<'a>,
    entry: &'a EntryPoint,
    budget: usize,
) -> Walk<'a> {
    let function = &entry.function;
    let mut walk = Walk::new(context, function, Graph::new(), Vec::new(), budget);
    walk.is_entry = true;
    walk.checks_subgroup_operations = requires_subgroup_uniformity(context.module, function);
    for (handle, expression) in function.expressions.iter() {
        let Expression::FunctionArgument(at) = *expression else { continue };
        let argument = &function.arguments[at as usize];
        let span = function.expressions.get_span(handle);
        let mut nodes = Vec::new();
        if let Some(binding) = &argument.binding {
            nodes.push(values::builtin(&mut walk.graph, binding, span));
        } else if let TypeInner::Struct { members, .. } = &context.module.types[argument.ty].inner {
            for binding in members.iter().filter_map(|member| member.binding.as_ref()) {
                nodes.push(values::builtin(&mut walk.graph, binding, span));
            }
        }
        walk.values[handle.index()] = walk.graph.join(&nodes);
    }
    walk.run(Node::UNIFORM);
    walk
}

/// Returns whether the source requires uniform control flow for the subgroup operations of a
/// function: the innermost `diagnostic` of that rule decides.
fn requires_subgroup_uniformity(module: &Module, function: &Function) -> bool {
    let mut next = function.diagnostic_filter_leaf;
    while let Some(handle) = next {
        let node = &module.diagnostic_filters[handle];
        if let FilterableTriggeringRule::Unknown(name) = &node.inner.triggering_rule
            && &**name == "subgroup_uniformity"
        {
            return node.inner.new_severity == Severity::Error;
        }
        next = node.parent;
    }
    false
}

/// Returns whether a function contains an operation that needs uniform control flow.
fn needs_any(function: &Function, subgroup_operations: bool) -> bool {
    let mut expressions = function.expressions.iter();
    expressions.any(|(_, expression)| {
        matches!(
            expression,
            Expression::CooperativeLoad { .. } | Expression::CooperativeMultiplyAdd { .. }
        )
    }) || block_needs_any(&function.body, subgroup_operations)
}

fn block_needs_any(block: &Block, subgroup_operations: bool) -> bool {
    block.iter().any(|statement| match statement {
        Statement::ControlBarrier(barrier) => subgroup_operations || *barrier != Barrier::SUB_GROUP,
        Statement::WorkGroupUniformLoad { .. } | Statement::CooperativeStore { .. } => true,
        Statement::SubgroupBallot { .. }
        | Statement::SubgroupGather { .. }
        | Statement::SubgroupCollectiveOperation { .. } => subgroup_operations,
        Statement::Block(inner) => block_needs_any(inner, subgroup_operations),
        Statement::If { accept, reject, .. } => {
            block_needs_any(accept, subgroup_operations)
                || block_needs_any(reject, subgroup_operations)
        }
        Statement::Switch { cases, .. } => {
            cases.iter().any(|case| block_needs_any(&case.body, subgroup_operations))
        }
        Statement::Loop { body, continuing, .. } => {
            block_needs_any(body, subgroup_operations)
                || block_needs_any(continuing, subgroup_operations)
        }
        _ => false,
    })
}
