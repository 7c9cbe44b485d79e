//! Rejects kernels that become huge when each call is replaced by the function that it calls, as
//! drivers do: twenty functions that call the one before twice are a million copies of the first.

use naga::{Block, Function, Handle, Module, Statement};

use crate::ShaderErrorKind;
use crate::wgsl::report::Report;

/// Maximum number of expressions of a kernel, counting those of a function once per call.
const MAX_EXPANDED: u64 = 1 << 19;

/// Rejects a module with a kernel past the limit.
pub(crate) fn check(module: &Module) -> Result<(), Box<Report>> {
    let mut sizes = Vec::with_capacity(module.functions.len());
    // A function stands behind those that it calls.
    for (handle, function) in module.functions.iter() {
        let size = expanded(function, &sizes);
        if size > MAX_EXPANDED {
            return Err(too_large(module, handle));
        }
        sizes.push(size);
    }
    let mut kernels = module.entry_points.iter();
    match kernels.find(|kernel| expanded(&kernel.function, &sizes) > MAX_EXPANDED) {
        Some(kernel) => Err(Box::new(report(&kernel.name))),
        None => Ok(()),
    }
}

fn expanded(function: &Function, sizes: &[u64]) -> u64 {
    calls_in(&function.body, sizes).saturating_add(function.expressions.len() as u64)
}

fn calls_in(block: &Block, sizes: &[u64]) -> u64 {
    block.iter().fold(0, |sum, statement| {
        sum.saturating_add(match statement {
            Statement::Call { function, .. } => sizes.get(function.index()).map_or(0, |size| *size),
            Statement::Block(block) => calls_in(block, sizes),
            Statement::If { accept, reject, .. } => {
                calls_in(accept, sizes).saturating_add(calls_in(reject, sizes))
            }
            Statement::Switch { cases, .. } => {
                cases.iter().fold(0, |sum, case| calls_in(&case.body, sizes).saturating_add(sum))
            }
            Statement::Loop { body, continuing, .. } => {
                calls_in(body, sizes).saturating_add(calls_in(continuing, sizes))
            }
            _ => 0,
        })
    })
}

fn too_large(module: &Module, function: Handle<Function>) -> Box<Report> {
    let name = module.functions[function].name.as_deref().unwrap_or("a function");
    Box::new(report(name).at(module.functions.get_span(function), "this function"))
}

fn report(name: &str) -> Report {
    let message = format!(
        "`{name}` has more than {MAX_EXPANDED} expressions, counting those of a function once per \
         call"
    );
    Report::new(ShaderErrorKind::TooComplex, message)
        .note("help: drivers put a copy of the function in place of each call: call it in a loop")
}
