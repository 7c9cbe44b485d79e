//! Error reports about operations in non-uniform control flow.

use naga::{Module, Span};

use super::graph::{Kind, Origin, Scope, Search, Source};
use super::summary::{Need, Requirement};
use super::walk::Walk;
use crate::ShaderErrorKind;
use crate::wgsl::report::Report;

/// Rejects the first operation of a function whose uniformity requirement is violated.
pub(super) fn check_requirements(walk: &Walk<'_>) -> Result<(), Box<Report>> {
    let scopes = walk.graph.scopes();
    let mut needed = walk.requirements.iter();
    match needed.find(|needed| scopes[needed.node.index()] > needed.scope) {
        Some(needed) => Err(uniformity_error(walk, needed)),
        None => Ok(()),
    }
}

fn uniformity_error(walk: &Walk<'_>, needed: &Requirement) -> Box<Report> {
    let (mut condition, mut source) = (None, None);
    Search::new(&walk.graph).visit(needed.node, &mut |search, node| match walk.graph.kind(node) {
        Kind::Source(found) if found.scope > needed.scope => {
            (condition, source) = (search.condition(node), Some(found));
            true
        }
        _ => false,
    });
    let condition = needed.condition.or(condition);
    let name = needed.site.name;
    let (whole, all) = match needed.scope {
        Scope::Subgroup => ("subgroup", "all lanes of a subgroup"),
        _ => ("workgroup", "all invocations of a workgroup"),
    };
    let (message, label) = match needed.need {
        Need::ControlFlow => (
            format!(
                "{} is not in uniform control flow: some invocations of a {whole} may reach it \
                 while others do not",
                quoted(name)
            ),
            format!("{all} must get here together"),
        ),
        Need::NoAlias => (
            "two pointers to one variable are given to a function that writes through one of them"
                .to_owned(),
            "WGSL forbids such aliases".to_owned(),
        ),
        Need::Pointer => (
            format!("the pointer of `{name}` may differ between the invocations of a {whole}"),
            format!("{all} must pass the same pointer"),
        ),
    };
    let mut report = Report::new(ShaderErrorKind::Validation, message);
    report = report.at(needed.site.span, label);
    if let Some(call) = needed.call {
        report = report.at(call, "called here");
    }
    if let Some(condition) = condition {
        report = report.at(condition, format!("may differ between the invocations of a {whole}"));
    }
    if let Some(source) = source {
        report = explain(walk.context.module, report, source, condition);
    }
    Box::new(report.note(help(needed)))
}

/// Quotes the name of a function; a description, which has blanks, stays as it is.
fn quoted(name: &str) -> String {
    if name.contains(' ') { name.to_owned() } else { format!("`{name}`") }
}

fn help(needed: &Requirement) -> &'static str {
    match (needed.need, needed.scope) {
        (Need::ControlFlow, Scope::Subgroup) => {
            "help: move it to where all lanes get, or let the condition depend only on what is the \
             same for a subgroup: `subgroup_id`, `workgroup_id`, uniforms, buffers that are only \
             read"
        }
        (Need::ControlFlow, _) => {
            "help: move it to where all invocations get, or let the condition depend only on what \
             is the same for a workgroup: `workgroup_id`, `num_workgroups`, uniforms, buffers that \
             are only read, `workgroupUniformLoad`"
        }
        (Need::NoAlias, _) => "help: copy the variable, and pass a pointer to the copy",
        (Need::Pointer, _) => {
            "help: index by what is the same for a workgroup, or load the element without \
             `workgroupUniformLoad` after a `workgroupBarrier()`"
        }
    }
}

/// Adds the source of non-uniformity, as a label or a note.
fn explain(module: &Module, report: Report, source: Source, condition: Option<Span>) -> Report {
    let text = match source.origin {
        Origin::Builtin if source.scope == Scope::Subgroup => {
            "this builtin differs between subgroups".to_owned()
        }
        Origin::Builtin => "this builtin differs between invocations".to_owned(),
        Origin::Memory(global) => {
            let name = module.global_variables[global].name.as_deref().unwrap_or("the variable");
            format!("invocations may read different values here, as `{name}` can be written")
        }
        Origin::Private => "a private variable is read here: it may differ".to_owned(),
        Origin::Atomic => {
            "an atomic operation may return a different result to each invocation".to_owned()
        }
        Origin::Subgroup => "a subgroup operation returns different results".to_owned(),
        Origin::Alias => "two pointers to one variable are passed here".to_owned(),
        Origin::Other => "this may differ between invocations".to_owned(),
    };
    let range = |span: Span| span.to_range().unwrap_or(0..0);
    let source_range = range(source.span);
    let shown = condition
        .map(range)
        .is_some_and(|shown| shown.start <= source_range.start && source_range.end <= shown.end);
    if shown || !source.span.is_defined() {
        return report.note(format!("note: {text}").replace(" here", ""));
    }
    report.at(source.span, text)
}

/// The error for a function with too many assignments at control-flow joins.
pub(super) fn too_complex(function: Span) -> Box<Report> {
    let message = "too many variables change on too many paths through the kernel to determine \
                   whether its barriers are in uniform control flow";
    let report = Report::new(ShaderErrorKind::TooComplex, message).at(function, "this function");
    Box::new(report.note("help: split it into functions, or declare variables where they are used"))
}
