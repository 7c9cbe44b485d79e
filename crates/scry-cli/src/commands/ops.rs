//! `scry ops`: lists the operations on tensors.

use std::fmt::Write;

use scry_gpu::BackendKind;
use scry_tensor::{Operation, operations};
use serde_json::{Value, json};

use crate::args::Ops;
use crate::report::{Failure, Report};

/// The backends whose kernels are listed. That of wgpu has the kernels of Vulkan.
const BACKENDS: [BackendKind; 3] = [BackendKind::Cuda, BackendKind::Vulkan, BackendKind::Cpu];

/// Lists the operations whose name contains a text.
pub fn run(args: &Ops) -> Result<Report, Failure> {
    let name = args.name.as_deref().unwrap_or_default();
    let found: Vec<Operation> = operations().filter(|it| it.name.contains(name)).collect();
    if found.is_empty() {
        let text = format!("no operation has a name with `{name}`; `scry ops` lists all");
        return Err(Failure::usage(text));
    }
    let list = found.iter().map(to_json).collect::<Vec<_>>();
    Ok(Report::new(found.iter().map(text).collect(), json!({ "operations": list })))
}

fn text(operation: &Operation) -> String {
    let mut text = format!("{}  {}\n", operation.name, operation.summary());
    let mut line = |name: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "    {name:7} {value}");
    };
    line("types", operation.type_names());
    let kernels = BACKENDS.map(|backend| operation.kernels_on(backend).join(", "));
    if kernels.iter().all(|other| *other == kernels[0]) {
        line("kernels", kernels[0].clone());
    } else {
        for (backend, kernels) in BACKENDS.into_iter().zip(kernels) {
            line(backend.name(), kernels);
        }
    }
    text
}

fn to_json(operation: &Operation) -> Value {
    let kernels = BACKENDS.map(|backend| (backend.name(), operation.kernels_on(backend)));
    let kernels: serde_json::Map<String, Value> =
        kernels.into_iter().map(|(name, kernels)| (name.to_owned(), json!(kernels))).collect();
    let types: Vec<&str> = operation.types.iter().map(|dtype| dtype.name()).collect();
    json!({
        "name": operation.name,
        "summary": operation.summary(),
        "types": types,
        "kernels": kernels,
    })
}
