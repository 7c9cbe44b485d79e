//! Function summaries for interprocedural analysis.

use naga::Span;

use super::graph::{Kind, Node, Scope, Search, Source};
use super::walk::Walk;

/// A uniformity requirement of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// The control flow must be uniform.
    ControlFlow,
    /// The pointer argument must be uniform.
    Pointer,
    /// No two pointers may alias a variable that is written.
    NoAlias,
}

/// An operation with a uniformity requirement, in the source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub(super) span: Span,
    /// The name in the source, or a description.
    pub(super) name: &'static str,
}

/// A uniformity requirement in the function under analysis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requirement {
    pub(super) node: Node,
    /// The scope over which it must be uniform.
    pub(super) scope: Scope,
    pub(super) need: Need,
    pub(super) site: Site,
    /// The condition around the operation in a called function.
    pub(super) condition: Option<Span>,
    /// The call that leads to the operation, if it is in another function.
    pub(super) call: Option<Span>,
}

/// An input of a function that must be uniform.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputRequirement {
    pub(super) input: u32,
    pub(super) scope: Scope,
    pub(super) need: Need,
    pub(super) site: Site,
    pub(super) condition: Option<Span>,
}

/// The dependences of a function's result, or of the content of a pointer argument.
#[derive(Debug, Clone, Default)]
pub(super) struct Dependence {
    /// The inputs, by number.
    pub(super) inputs: Vec<u32>,
    /// The least uniform of all other sources.
    pub(super) source: Option<Source>,
}

/// The summary of a function. Its inputs are numbered: the control flow, then the values of its
/// arguments, then the contents of pointer arguments.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) result: Dependence,
    /// For each argument the content of its pointee on return, if the function may change it.
    pub(super) contents: Vec<Option<Dependence>>,
    pub(super) requirements: Vec<InputRequirement>,
}

impl Summary {
    /// Creates the summary of an analysed function.
    pub(super) fn from_walk(walk: &Walk<'_>) -> Self {
        let locals = walk.function.local_variables.len();
        let content = |(at, node): (usize, &Node)| {
            walk.assigned[locals + at].then(|| Dependence::of_node(walk, *node))
        };
        Self {
            result: Dependence::of_node(walk, walk.result),
            contents: walk.contents.iter().enumerate().map(content).collect(),
            requirements: input_requirements(walk),
        }
    }
}

impl Dependence {
    fn of_node(walk: &Walk<'_>, node: Node) -> Self {
        let mut found = Self::default();
        Search::new(&walk.graph).visit(node, &mut |_, node| {
            match walk.graph.kind(node) {
                Kind::Input(input) => found.inputs.push(input),
                Kind::Source(source)
                    if found.source.is_none_or(|earlier| earlier.scope < source.scope) =>
                {
                    found.source = Some(source);
                }
                _ => {}
            }
            false
        });
        found
    }
}

/// Returns one requirement per scope and input that must be uniform over it: the first in the
/// source.
fn input_requirements(walk: &Walk<'_>) -> Vec<InputRequirement> {
    let mut input_requirements = Vec::new();
    for scope in [Scope::Workgroup, Scope::Subgroup] {
        let mut search = Search::new(&walk.graph);
        for requirement in walk.requirements.iter().filter(|needed| needed.scope == scope) {
            let Requirement { need, site, condition, .. } = *requirement;
            search.visit(requirement.node, &mut |search, node| {
                if let Kind::Input(input) = walk.graph.kind(node) {
                    let condition = condition.or_else(|| search.condition(node));
                    input_requirements.push(InputRequirement {
                        input,
                        scope,
                        need,
                        site,
                        condition,
                    });
                }
                false
            });
        }
    }
    input_requirements
}
