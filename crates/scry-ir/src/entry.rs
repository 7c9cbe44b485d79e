//! Which entry point of a module is the kernel.

use naga::{Module, ShaderStage};

use crate::ShaderErrorKind;
use crate::report::Report;

/// The name of the entry point to compile: the one asked for, or the only compute entry point.
pub(crate) fn choose(module: &Module, asked: Option<&str>) -> Result<String, Box<Report>> {
    let compute: Vec<&str> = names(module, |stage| stage == ShaderStage::Compute);
    match (asked, compute.as_slice()) {
        (Some(name), _) if compute.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(absent(module, name, &compute)),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(none(module)),
        (None, _) => Err(refuse(format!(
            "the source has {} compute entry points: name the one to run: {}",
            compute.len(),
            list(&compute)
        ))),
    }
}

/// The names of all compute entry points, in source order.
pub(crate) fn compute(module: &Module) -> Vec<String> {
    let names = names(module, |stage| stage == ShaderStage::Compute);
    names.into_iter().map(str::to_owned).collect()
}

/// Drops every other entry point.
pub(crate) fn keep_only(module: &mut Module, name: &str) {
    module
        .entry_points
        .retain(|entry| entry.stage == ShaderStage::Compute && entry.name == name);
}

fn names(module: &Module, wanted: impl Fn(ShaderStage) -> bool) -> Vec<&str> {
    let entries = module.entry_points.iter();
    entries
        .filter(|entry| wanted(entry.stage))
        .map(|entry| entry.name.as_str())
        .collect()
}

/// No entry point of the name asked for.
fn absent(module: &Module, name: &str, compute: &[&str]) -> Box<Report> {
    if let Some(entry) = module.entry_points.iter().find(|entry| entry.name == name) {
        let stage = stage_name(entry.stage);
        return refuse(format!(
            "`{name}` is a {stage} entry point; only compute entry points run"
        ));
    }
    let function = module
        .functions
        .iter()
        .find(|(_, f)| f.name.as_deref() == Some(name));
    if let Some((handle, _)) = function {
        let report = refuse(format!("`{name}` is a function, but not an entry point"));
        let report = report.at(module.functions.get_span(handle), "this function");
        return Box::new(report.note(ADVICE));
    }
    if compute.is_empty() {
        return none(module);
    }
    refuse(format!(
        "no entry point `{name}`: the source has {}",
        list(compute)
    ))
}

const ADVICE: &str = "help: write `@compute @workgroup_size(64)` before the function to run";

/// No compute entry point at all.
fn none(module: &Module) -> Box<Report> {
    let others = names(module, |stage| stage != ShaderStage::Compute);
    let mut report = if others.is_empty() {
        refuse("the source has no entry point")
    } else {
        let others: Vec<String> = module
            .entry_points
            .iter()
            .map(|entry| format!("`{}` ({})", entry.name, stage_name(entry.stage)))
            .collect();
        refuse(format!(
            "the source has no compute entry point, only {}",
            others.join(", ")
        ))
    };
    let main = module
        .functions
        .iter()
        .find(|(_, f)| f.name.as_deref() == Some("main"));
    if let Some((handle, _)) = main {
        *report = report.at(module.functions.get_span(handle), "not an entry point");
    }
    Box::new(report.note(ADVICE))
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

fn refuse(message: impl Into<String>) -> Box<Report> {
    Box::new(Report::new(ShaderErrorKind::EntryPoint, message))
}

/// `` `a`, `b`, `c` ``, cut short after sixteen.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    let mut text: Vec<String> = names
        .iter()
        .take(16)
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    if names.len() > 16 {
        text.push(format!("and {} more", names.len() - 16));
    }
    text.join(", ")
}
