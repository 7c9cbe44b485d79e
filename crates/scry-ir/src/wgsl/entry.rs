//! Selection of the entry point.

use naga::{Module, ShaderStage, Span};

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::report::Report;

const ADVICE: &str = "help: write `@compute @workgroup_size(64)` before the function to run";

/// Returns the entry point to compile: the requested one, or the only compute entry point.
pub(crate) fn choose(
    module: &Module,
    outline: &Declarations<'_>,
    asked: Option<&str>,
) -> Result<String, Box<Report>> {
    let compute = compute(module);
    let compute: Vec<&str> = compute.iter().map(String::as_str).collect();
    match (asked, compute.as_slice()) {
        (Some(name), _) if compute.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Box::new(absent(module, outline, name, &compute))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Box::new(none(module, outline))),
        (None, _) => Err(Box::new(several(outline, &compute))),
    }
}

/// Returns the names of all compute entry points, in source order.
pub(crate) fn compute(module: &Module) -> Vec<String> {
    let entries = module.entry_points.iter();
    let compute = entries.filter(|entry| entry.stage == ShaderStage::Compute);
    compute.map(|entry| entry.name.clone()).collect()
}

/// Removes all other entry points.
pub(crate) fn keep_only(module: &mut Module, name: &str) {
    module.entry_points.retain(|entry| entry.stage == ShaderStage::Compute && entry.name == name);
}

fn several(outline: &Declarations<'_>, compute: &[&str]) -> Report {
    let (count, names) = (compute.len(), list(compute));
    let mut report = refuse(format!("the source has {count} compute entry points: {names}"));
    for name in compute.iter().take(4) {
        report = report.at(place(outline, name), "a compute entry point");
    }
    report.note("help: name the one to run")
}

/// The error for a requested entry point that does not exist.
fn absent(module: &Module, outline: &Declarations<'_>, name: &str, compute: &[&str]) -> Report {
    if let Some(entry) = module.entry_points.iter().find(|entry| entry.name == name) {
        let stage = stage_name(entry.stage);
        let message = format!("`{name}` is a {stage} entry point; only compute entry points run");
        return refuse(message).at(place(outline, name), "this one");
    }
    if let Some(place) = outline.function(name) {
        let report = refuse(format!("`{name}` is a function, but not an entry point"));
        return report.at(place, "this function").note(ADVICE);
    }
    if compute.is_empty() {
        return none(module, outline);
    }
    refuse(format!("no entry point `{name}`: the source has {}", list(compute)))
}

/// The error for a source without a compute entry point.
fn none(module: &Module, outline: &Declarations<'_>) -> Report {
    let entries = module.entry_points.iter().take(16);
    let others: Vec<String> =
        entries.map(|entry| format!("`{}` ({})", entry.name, stage_name(entry.stage))).collect();
    let report = if others.is_empty() {
        refuse("the source has no entry point")
    } else {
        refuse(format!("the source has no compute entry point, only {}", others.join(", ")))
    };
    let first = module.entry_points.first().map_or("main", |entry| entry.name.as_str());
    report.at(place(outline, first), "not a compute entry point").note(ADVICE)
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

fn place(outline: &Declarations<'_>, name: &str) -> Span {
    outline.function(name).unwrap_or_default()
}

fn refuse(message: impl Into<String>) -> Report {
    Report::new(ShaderErrorKind::EntryPoint, message)
}

/// Formats names as `` `a`, `b`, `c` ``, at most sixteen.
fn list(names: &[&str]) -> String {
    let mut text: Vec<String> = names.iter().take(16).map(|name| format!("`{name}`")).collect();
    if names.len() > 16 {
        text.push(format!("and {} more", names.len() - 16));
    }
    text.join(", ")
}
