//! Selection of the entry point.

use naga::{Module, ShaderStage, Span};

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::report::Report;

const ADVICE: &str = "help: write `@compute @workgroup_size(64)` before the function to run";

/// Returns the entry point to compile: the requested one, or the only compute entry point.
pub(crate) fn choose(
    module: &Module,
    declarations: &Declarations<'_>,
    requested: Option<&str>,
) -> Result<String, Box<Report>> {
    let compute = compute_entry_points(module);
    let compute: Vec<&str> = compute.iter().map(String::as_str).collect();
    match (requested, compute.as_slice()) {
        (Some(name), _) if compute.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Box::new(absent_error(module, declarations, name, &compute))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Box::new(no_compute_error(module, declarations))),
        (None, _) => Err(Box::new(several_error(declarations, &compute))),
    }
}

/// Returns the names of all compute entry points, in source order.
pub(crate) fn compute_entry_points(module: &Module) -> Vec<String> {
    let entries = module.entry_points.iter();
    let compute = entries.filter(|entry| entry.stage == ShaderStage::Compute);
    compute.map(|entry| entry.name.clone()).collect()
}

/// Removes all other entry points.
pub(crate) fn keep_only(module: &mut Module, name: &str) {
    module.entry_points.retain(|entry| entry.stage == ShaderStage::Compute && entry.name == name);
}

/// The error for several compute entry points, none of which was requested.
fn several_error(declarations: &Declarations<'_>, compute: &[&str]) -> Report {
    let (count, names) = (compute.len(), format_names(compute));
    let mut report =
        entry_point_error(format!("the source has {count} compute entry points: {names}"));
    for name in compute.iter().take(4) {
        report = report.at(function_span(declarations, name), "a compute entry point");
    }
    report.note("help: name the one to run")
}

/// The error for a requested entry point that does not exist.
fn absent_error(
    module: &Module,
    declarations: &Declarations<'_>,
    name: &str,
    compute: &[&str],
) -> Report {
    if let Some(entry) = module.entry_points.iter().find(|entry| entry.name == name) {
        let stage = stage_name(entry.stage);
        let message = format!("`{name}` is a {stage} entry point; only compute entry points run");
        return entry_point_error(message).at(function_span(declarations, name), "this one");
    }
    if let Some(span) = declarations.function(name) {
        let report = entry_point_error(format!("`{name}` is a function, but not an entry point"));
        return report.at(span, "this function").note(ADVICE);
    }
    if compute.is_empty() {
        return no_compute_error(module, declarations);
    }
    let names = format_names(compute);
    entry_point_error(format!("no entry point `{name}`: the compute entry points are {names}"))
}

/// The error for a source without a compute entry point.
fn no_compute_error(module: &Module, declarations: &Declarations<'_>) -> Report {
    let entries = module.entry_points.iter().take(16);
    let others: Vec<String> =
        entries.map(|entry| format!("`{}` ({})", entry.name, stage_name(entry.stage))).collect();
    let report = if others.is_empty() {
        entry_point_error("the source has no entry point")
    } else {
        entry_point_error(format!(
            "the source has no compute entry point, only {}",
            others.join(", ")
        ))
    };
    let first = module.entry_points.first().map_or("main", |entry| entry.name.as_str());
    report.at(function_span(declarations, first), "not a compute entry point").note(ADVICE)
}

fn stage_name(stage: ShaderStage) -> &'static str {
    match stage {
        ShaderStage::Vertex => "vertex",
        ShaderStage::Task => "task",
        ShaderStage::Mesh => "mesh",
        ShaderStage::Fragment => "fragment",
        ShaderStage::Compute => "compute",
        ShaderStage::RayGeneration => "ray generation",
        ShaderStage::Miss => "miss",
        ShaderStage::AnyHit => "any hit",
        ShaderStage::ClosestHit => "closest hit",
    }
}

fn function_span(declarations: &Declarations<'_>, name: &str) -> Span {
    declarations.function(name).unwrap_or_default()
}

fn entry_point_error(message: impl Into<String>) -> Report {
    Report::new(ShaderErrorKind::EntryPoint, message)
}

/// Formats names as `` `a`, `b`, `c` ``, at most sixteen.
fn format_names(names: &[&str]) -> String {
    let mut text: Vec<String> = names.iter().take(16).map(|name| format!("`{name}`")).collect();
    if names.len() > 16 {
        text.push(format!("and {} more", names.len() - 16));
    }
    text.join(", ")
}
