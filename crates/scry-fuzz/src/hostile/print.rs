//! Prints hostile kernels as WGSL.

use std::fmt::Write as _;

use super::HostileKernel;
use super::tree::{Block, Expr, Extent, Global, Line, Space, Stmt};
use crate::print::words;
use crate::types::Type;

/// Returns the source of a kernel, without unused declarations.
pub(super) fn source(kernel: &HostileKernel) -> String {
    let mut code = entry_point(kernel);
    for function in kernel.functions.iter().rev() {
        if words(&code).contains(function.name.as_str()) {
            code = format!("{} {{\n{}}}\n{code}", function.head, block(&function.body, 1));
        }
    }
    if code.contains("fuel") {
        code = format!("var<private> fuel: u32 = {}u;\n{code}", kernel.fuel);
    }
    let globals: String =
        used_globals(kernel, &code).map(|global| global_text(kernel, global)).collect();
    let code = format!("{globals}\n{code}");
    format!("{}{}{code}", kernel.enables, structs(kernel, &code))
}

/// Returns the global variables that a source uses, in the order of declaration.
pub(super) fn used_globals<'k>(
    kernel: &'k HostileKernel,
    code: &str,
) -> impl Iterator<Item = &'k Global> {
    let found: Vec<&Global> = {
        let words = words(code);
        kernel.globals.iter().filter(|global| words.contains(global.name.as_str())).collect()
    };
    found.into_iter()
}

/// Returns whether variables of the address space are bound to buffers.
pub(super) fn is_bound(space: Space) -> bool {
    matches!(space, Space::Input | Space::Output | Space::Uniform)
}

fn structs(kernel: &HostileKernel, code: &str) -> String {
    let mut text = String::new();
    for (index, members) in kernel.structs.iter().enumerate().rev() {
        let name = format!("S{index}");
        if words(code).contains(name.as_str()) || words(&text).contains(name.as_str()) {
            let members = members.iter().enumerate().map(|(i, ty)| format!("    m{i}: {ty},\n"));
            text = format!("struct {name} {{\n{}}}\n{text}", members.collect::<String>());
        }
    }
    text
}

fn global_text(kernel: &HostileKernel, global: &Global) -> String {
    let Global { name, ty, .. } = global;
    let element = match (global.atomic, ty) {
        (true, Type::Array(element, len)) => format!("array<atomic<{element}>, {len}>"),
        (true, _) => format!("atomic<{ty}>"),
        (false, _) => ty.to_string(),
    };
    let mut text = String::new();
    let declared = match global.extent {
        Extent::One => element,
        Extent::Runtime(_) => format!("array<{element}>"),
        Extent::RuntimeMember(_) => {
            let rest = format!("    rest: array<{element}>,\n");
            let _ = write!(text, "struct Of_{name} {{\n    n: u32,\n    m: u32,\n{rest}}}\n");
            format!("Of_{name}")
        }
    };
    let space = match global.space {
        Space::Private => return format!("var<private> {name}: {declared};\n"),
        Space::Workgroup => return format!("var<workgroup> {name}: {declared};\n"),
        Space::Input => "storage, read",
        Space::Output => "storage, read_write",
        Space::Uniform => "uniform",
    };
    let bound = kernel.globals.iter().filter(|other| is_bound(other.space));
    let binding = bound.take_while(|other| other.name != *name).count();
    let _ = writeln!(text, "@group(0) @binding({binding}) var<{space}> {name}: {declared};");
    text
}

fn entry_point(kernel: &HostileKernel) -> String {
    let [x, y, z] = kernel.workgroup_size;
    let body = block(&kernel.body, 1);
    let me = if words(&body).contains("me") {
        format!("    let me = group.x * {}u + lane;\n", x * y * z)
    } else {
        String::new()
    };
    let mut parameters = String::new();
    let uses = |word: &str| words(&body).contains(word) || words(&me).contains(word);
    for (name, builtin, ty) in [
        ("lane", "local_invocation_index", "u32"),
        ("group", "workgroup_id", "vec3<u32>"),
        ("groups", "num_workgroups", "vec3<u32>"),
        ("id", "global_invocation_id", "vec3<u32>"),
    ] {
        if uses(name) {
            let _ = writeln!(parameters, "    @builtin({builtin}) {name}: {ty},");
        }
    }
    if !parameters.is_empty() {
        parameters = format!("\n{parameters}");
    }
    format!("@compute @workgroup_size({x}, {y}, {z})\nfn main({parameters}) {{\n{me}{body}}}\n")
}

fn block(block: &Block, depth: usize) -> String {
    block.iter().map(|stmt| statement(stmt, depth)).collect()
}

fn statement(stmt: &Stmt, depth: usize) -> String {
    let pad = "    ".repeat(depth);
    match stmt {
        Stmt::Line(text) => format!("{pad}{};\n", line(text)),
        Stmt::Fuel => format!("{pad}if fuel == 0u {{ break; }}\n{pad}fuel -= 1u;\n"),
        Stmt::Blocks(parts) => {
            let parts: Vec<String> = (parts.iter())
                .map(|part| {
                    let body = block(&part.body, depth + 1);
                    format!("{} {{\n{body}{pad}}}", line(&part.head))
                })
                .collect();
            format!("{pad}{}\n", parts.join(" "))
        }
    }
}

fn line(line: &Line) -> String {
    fill_template(&line.text, &line.operands)
}

/// Returns an expression as text.
pub(super) fn expression(expr: &Expr) -> String {
    fill_template(&expr.text, &expr.operands)
}

/// Replaces the placeholders of a text by operands.
fn fill_template(text: &str, operands: &[Expr]) -> String {
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digit, rest) = part.split_at(1);
        let index = usize::from(digit.as_bytes()[0] - b'0');
        out.push_str(&operands.get(index).map(expression).unwrap_or_default());
        out.push_str(rest);
    }
    out
}
