//! `scry reflect`: the interface of a kernel.

use std::fmt::Write;

use scry_ir::{
    Access, BindingInfo, BufferBindingType, Interface, Options, Outline, Override, OverrideValue,
    Program, TypeLayout,
};
use serde_json::{Value, json};

use super::{format_bytes, read_source, shader_failure, table};
use crate::args::Reflect;
use crate::data::dtype::shortest_decimal;
use crate::report::{Failure, Report};

/// Prints the interface of the selected kernel, or of every kernel in the file.
pub fn run(args: &Reflect) -> Result<Report, Failure> {
    let source = read_source(&args.file)?;
    let failed = |error| Failure::shader(&args.file, &error);
    let outline = Outline::read(&source).map_err(failed)?;
    let entries: Vec<Option<String>> = match &args.selection.entry {
        None if !outline.entry_points.is_empty() => {
            outline.entry_points.iter().cloned().map(Some).collect()
        }
        entry => vec![entry.clone()],
    };
    // An override without a default is assumed to be 1, so that layouts can be computed; the
    // override itself is listed as `must be set`.
    let mut overrides = outline.assume(&args.selection.set).values;
    // Keeps the names that no override has, so that compilation reports them.
    let unknown = args.selection.set.iter().filter(|given| !overrides.contains(given));
    let unknown: Vec<_> = unknown.cloned().collect();
    overrides.extend(unknown);
    let mut report = Report::new(String::new(), Value::Null);
    let mut kernels = Vec::new();
    for entry in entries {
        let options = Options { entry, overrides: overrides.clone(), ..Options::default() };
        let program = Program::with_options(&source, &options)
            .map_err(|error| shader_failure(&args.file, &outline, &error))?;
        let interface = without_assumed_values(program.interface(), &outline, &args.selection.set);
        report.text.push_str(&text(&interface, &outline));
        kernels.push(to_json(&interface, &outline));
    }
    report.json = json!({ "file": args.file.display().to_string(), "kernels": kernels });
    Ok(report)
}

/// Returns the interface, without the values of overrides that [`Outline::assume`] made up.
fn without_assumed_values(
    interface: &Interface,
    outline: &Outline,
    given: &[(String, OverrideValue)],
) -> Interface {
    let mut interface = interface.clone();
    for declared in &mut interface.overrides {
        let set = given.iter().any(|(key, _)| declared.matches_key(key));
        if outline.without_default.contains(&declared.name) && !set {
            declared.value = None;
        }
    }
    interface
}

/// Returns the attributes `@group(…) @binding(…)` of a binding.
pub fn binding_attributes(binding: &BindingInfo) -> String {
    format!("@group({}) @binding({})", binding.group, binding.binding)
}

/// Returns address space and access mode, as in `var<storage, read>`.
pub fn space_and_access(binding: &BindingInfo) -> &'static str {
    match (binding.ty, binding.access) {
        (BufferBindingType::Uniform, _) => "uniform",
        (BufferBindingType::Storage, Access::Read) => "storage, read",
        (BufferBindingType::Storage, Access::ReadWrite) => "storage, read_write",
    }
}

fn text(interface: &Interface, outline: &Outline) -> String {
    let Interface { entry_point, workgroup_size: [x, y, z], workgroup_memory, .. } = interface;
    // Writing to a string cannot fail.
    let mut text = format!("{entry_point}\n  workgroup size    {x} x {y} x {z}\n");
    let _ = writeln!(text, "  workgroup memory  {}", format_bytes((*workgroup_memory).into()));
    if !interface.features.is_empty() {
        let _ = writeln!(text, "  features          {}", interface.features);
    }
    if !interface.bindings.is_empty() {
        text.push_str("  buffers\n");
        let rows: Vec<Vec<String>> = interface.bindings.iter().map(binding_row).collect();
        text.push_str(&table(&rows, "    "));
        for binding in &interface.bindings {
            members(&mut text, &binding.layout);
        }
    }
    if let Some(immediates) = &interface.immediates {
        text.push_str("  immediates\n");
        let row = vec![
            immediates.name.clone(),
            immediates.layout.to_string(),
            format!("{} bytes", immediates.layout.fixed_size()),
        ];
        text.push_str(&table(&[row], "    "));
        members(&mut text, &immediates.layout);
    }
    if !interface.overrides.is_empty() {
        text.push_str("  overrides\n");
        let row = |declared| override_row(declared, outline);
        let rows: Vec<Vec<String>> = interface.overrides.iter().map(row).collect();
        text.push_str(&table(&rows, "    "));
    }
    text
}

fn binding_row(binding: &BindingInfo) -> Vec<String> {
    vec![
        binding_attributes(binding),
        binding.name.clone(),
        binding.layout.to_string(),
        space_and_access(binding).to_owned(),
        format!("at least {} bytes", binding.layout.min_binding_size()),
    ]
}

fn override_row(declared: &Override, outline: &Outline) -> Vec<String> {
    let name = match declared.id {
        Some(id) => format!("{} @id({id})", declared.name),
        None => declared.name.clone(),
    };
    let value = match declared.value {
        Some(value) if declared.ty.starts_with('f') => {
            format!("= {:?}", shortest_decimal(value, &declared.ty))
        }
        Some(value) => format!("= {value}"),
        None if outline.without_default.contains(&declared.name) => "must be set".to_owned(),
        None => "= an expression".to_owned(),
    };
    vec![name, declared.ty.clone(), value]
}

/// Writes the members of a structure, or of an array's element if that is one.
fn members(text: &mut String, layout: &TypeLayout) {
    match layout {
        TypeLayout::Array { element, .. } => members(text, element),
        TypeLayout::Struct { name, members, .. } => {
            let rows: Vec<Vec<String>> = members
                .iter()
                .map(|member| {
                    let offset = format!("offset {}", member.offset);
                    vec![offset, member.name.clone(), member.layout.to_string()]
                })
                .collect();
            let _ = writeln!(text, "      struct {name}, {} bytes", layout.fixed_size());
            text.push_str(&table(&rows, "        "));
        }
        _ => {}
    }
}

fn to_json(interface: &Interface, outline: &Outline) -> Value {
    let overrides = interface.overrides.iter().map(|declared| {
        json!({
            "name": declared.name,
            "id": declared.id,
            "type": declared.ty,
            "value": declared.value.map(|value| shortest_decimal(value, &declared.ty)),
            "has_default": !outline.without_default.contains(&declared.name),
        })
    });
    let immediates = interface.immediates.as_ref().map(|immediates| {
        json!({
            "name": immediates.name,
            "type": layout_json(&immediates.layout),
            "bytes": immediates.layout.fixed_size(),
        })
    });
    json!({
        "entry_point": interface.entry_point,
        "workgroup_size": interface.workgroup_size,
        "workgroup_memory_bytes": interface.workgroup_memory,
        "bindings": interface.bindings.iter().map(binding_json).collect::<Vec<_>>(),
        "immediates": immediates,
        "overrides": overrides.collect::<Vec<_>>(),
        "features": interface.features.names().collect::<Vec<_>>(),
    })
}

fn binding_json(binding: &BindingInfo) -> Value {
    let space = match binding.ty {
        BufferBindingType::Uniform => "uniform",
        BufferBindingType::Storage => "storage",
    };
    let access = match binding.access {
        Access::Read => "read",
        Access::ReadWrite => "read_write",
    };
    json!({
        "group": binding.group,
        "binding": binding.binding,
        "name": binding.name,
        "space": space,
        "access": access,
        "type": layout_json(&binding.layout),
        "min_bytes": binding.layout.min_binding_size(),
    })
}

fn layout_json(layout: &TypeLayout) -> Value {
    let mut value = json!({ "wgsl": layout.to_string() });
    match layout {
        TypeLayout::Array { element, len, stride } => {
            value["element"] = layout_json(element);
            value["len"] = json!(len);
            value["stride"] = json!(stride);
        }
        TypeLayout::Struct { members, size, .. } => {
            let members = members.iter().map(|member| {
                json!({
                    "name": member.name,
                    "offset": member.offset,
                    "type": layout_json(&member.layout),
                })
            });
            value["members"] = members.collect();
            value["size"] = json!(size);
        }
        TypeLayout::Matrix { stride, .. } => value["stride"] = json!(stride),
        TypeLayout::Scalar(_) | TypeLayout::Atomic(_) | TypeLayout::Vector { .. } => {}
    }
    value
}
