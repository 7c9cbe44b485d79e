//! Prints kernels as WGSL.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::exact::variable_bound;
use crate::tree::{
    Access, Block, Expr, Function, Global, IndexReduction, Literal, LoopKind, Node, Op, Place,
    RandomKernel, Space, Stmt,
};
use crate::types::{Scalar, Type};

/// Returns the source of a kernel, without unused declarations.
pub(crate) fn source(kernel: &RandomKernel) -> String {
    let mut code = entry_point(kernel);
    for (index, function) in kernel.functions.iter().enumerate().rev() {
        if words(&code).contains(format!("f{index}").as_str()) {
            code = format!("{}\n{code}", declaration(index, function));
        }
    }
    let code = format!("{}{code}", tame_functions(&code));
    let globals: String =
        used_globals(kernel, &code).map(|global| global_text(kernel, global)).collect();
    let code = format!("{globals}\n{code}");
    format!("{}{}{code}", kernel.enables, structs(kernel, &code))
}

/// Returns the global variables that a source uses, in the order of declaration.
pub(crate) fn used_globals<'k>(
    kernel: &'k RandomKernel,
    code: &str,
) -> impl Iterator<Item = &'k Global> {
    let found: HashSet<String> = words(code).into_iter().map(str::to_owned).collect();
    kernel.globals.iter().filter(move |global| found.contains(&global.name))
}

/// Returns the identifiers, keywords and numbers of a source.
pub(crate) fn words(code: &str) -> HashSet<&str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

fn structs(kernel: &RandomKernel, code: &str) -> String {
    let mut text = String::new();
    for (index, members) in kernel.structs.iter().enumerate().rev() {
        let name = format!("S{index}");
        if !words(code).contains(name.as_str()) && !words(&text).contains(name.as_str()) {
            continue;
        }
        let members: String =
            members.iter().enumerate().map(|(i, ty)| format!("    m{i}: {ty},\n")).collect();
        text = format!("struct {name} {{\n{members}}}\n{text}");
    }
    text
}

fn global_text(kernel: &RandomKernel, global: &Global) -> String {
    let Global { name, ty, .. } = global;
    let bound = kernel.globals.iter().filter(|other| is_bound(other.space));
    let binding = bound.take_while(|other| other.name != *name).count();
    let declared = match (global.atomic, ty) {
        (true, Type::Array(element, len)) => format!("array<atomic<{element}>, {len}>"),
        (true, _) => format!("array<atomic<{ty}>>"),
        _ if matches!(global.space, Space::Input | Space::Output) => format!("array<{ty}>"),
        _ => ty.to_string(),
    };
    let space = match global.space {
        Space::Private => return format!("var<private> {name}: {declared};\n"),
        Space::Workgroup => return format!("var<workgroup> {name}: {declared};\n"),
        Space::Immediate => return format!("var<immediate> {name}: {declared};\n"),
        Space::Input => "storage, read",
        Space::Output | Space::FixedStorage => "storage, read_write",
        Space::Uniform => "uniform",
    };
    format!("@group(0) @binding({binding}) var<{space}> {name}: {declared};\n")
}

/// Returns whether variables of the address space are bound to buffers.
pub(crate) fn is_bound(space: Space) -> bool {
    matches!(space, Space::Input | Space::Output | Space::FixedStorage | Space::Uniform)
}

/// Returns the functions that reduce floats to the bound of variables, one for each type.
fn tame_functions(code: &str) -> String {
    let mut text = String::new();
    for scalar in [Scalar::F16, Scalar::F32, Scalar::F64] {
        for width in 1..=4 {
            let ty = Type::scalar_or_vector(scalar, width);
            if code.contains(&format!("tame_{}(", ty.identifier())) {
                text.push_str(&tame_function(&ty, scalar));
            }
        }
        for (columns, rows) in (2..=4).flat_map(|c| (2..=4).map(move |r| (c, r))) {
            let ty = Type::Matrix(scalar, columns, rows);
            if code.contains(&format!("tame_{}(", ty.identifier())) {
                text.push_str(&tame_matrix(&ty, scalar, columns, rows));
            }
        }
    }
    text
}

fn tame_function(ty: &Type, scalar: Scalar) -> String {
    format!(
        "fn tame_{}(x: {ty}) -> {ty} {{\n    return {};\n}}\n",
        ty.identifier(),
        reduced("x", ty, scalar)
    )
}

fn tame_matrix(ty: &Type, scalar: Scalar, columns: usize, rows: usize) -> String {
    let column = |i| reduced(&format!("x[{i}]"), &Type::Vector(scalar, rows), scalar);
    let columns: Vec<String> = (0..columns).map(column).collect();
    let columns = columns.join(",\n        ");
    format!(
        "fn tame_{}(x: {ty}) -> {ty} {{\n    return {ty}(\n        {columns},\n    );\n}}\n",
        ty.identifier()
    )
}

/// Returns the text of a value reduced to the bound of variables.
fn reduced(value: &str, ty: &Type, scalar: Scalar) -> String {
    let bound = variable_bound(scalar);
    let number = |value: f64| literal(Literal::Float(value), scalar);
    let max = number(2f64.powi(bound.magnitude));
    let steps_per_unit = number(2f64.powi(bound.fraction));
    let step = number(2f64.powi(-bound.fraction));
    format!("floor(clamp({value}, {ty}(-{max}), {ty}({max})) * {steps_per_unit}) * {step}")
}

fn entry_point(kernel: &RandomKernel) -> String {
    let [x, y, z] = kernel.workgroup_size;
    let lanes = x * y * z;
    let body = block(&kernel.body, 1);
    let owners = owners(&body, lanes);
    format!(
        "@compute @workgroup_size({x}, {y}, {z})\n\
         fn main(\n    @builtin(local_invocation_index) lane: u32,\n    \
         @builtin(workgroup_id) group: vec3<u32>,\n    \
         @builtin(num_workgroups) groups: vec3<u32>,\n    \
         @builtin(global_invocation_id) id: vec3<u32>,\n) {{\n    \
         let me = (group.x + groups.x * (group.y + groups.y * group.z)) * {lanes}u + lane;\n\
         {owners}{body}}}\n"
    )
}

/// Returns the declarations of the permutations of invocations that a body uses: with each of them,
/// every element of an output has exactly one owner.
fn owners(body: &str, lanes: u32) -> String {
    let mut text = String::new();
    let found = words(body);
    if found.contains("back") || found.contains("twin") {
        let _ = writeln!(text, "    let total = groups.x * groups.y * groups.z * {lanes}u;");
    }
    if found.contains("back") {
        text.push_str("    let back = total - 1u - me;\n");
    }
    if found.contains("twin") {
        text.push_str("    let twin = select(me, me ^ 1u, (me | 1u) < total);\n");
    }
    text
}

fn declaration(index: usize, function: &Function) -> String {
    let pointers = function.pointers.iter().enumerate();
    let pointers = pointers.map(|(i, ty)| format!("q{i}: ptr<function, {ty}>"));
    let values = function.parameters.iter().enumerate().map(|(i, ty)| format!("p{i}: {ty}"));
    let parameters: Vec<String> = pointers.chain(values).collect();
    format!(
        "fn f{index}({}) -> {} {{\n{}}}\n",
        parameters.join(", "),
        function.result,
        block(&function.body, 1)
    )
}

fn block(block: &Block, depth: usize) -> String {
    block.iter().map(|stmt| statement(stmt, depth)).collect()
}

fn statement(stmt: &Stmt, depth: usize) -> String {
    let pad = "    ".repeat(depth);
    let inner = |nested: &Block| block(nested, depth + 1);
    let line = match stmt {
        Stmt::Let { name, value } => format!("let {name} = {};", expression(value)),
        Stmt::Var { name, value } => {
            format!("var {name}: {} = {};", value.ty, expression(value))
        }
        Stmt::Assign { place: to, operator, value } => {
            format!("{} {operator} {};", place(to), expression(value))
        }
        Stmt::If { condition, then_block, else_block, .. } => {
            let condition = expression(condition);
            let mut text = format!("if {condition} {{\n{}{pad}}}", inner(then_block));
            if !else_block.is_empty() {
                let _ = write!(text, " else {{\n{}{pad}}}", inner(else_block));
            }
            text
        }
        Stmt::Loop { .. } => return loop_text(stmt, depth),
        Stmt::Switch { selector, cases, default } => {
            let mut text = format!("switch {} {{\n", expression(selector));
            for (values, body) in cases {
                let values: Vec<String> = values.iter().map(|value| format!("{value}u")).collect();
                let body = block(body, depth + 2);
                let _ =
                    write!(text, "{pad}    case {}: {{\n{body}{pad}    }}\n", values.join(", "));
            }
            let default = block(default, depth + 2);
            let _ = write!(text, "{pad}    default: {{\n{default}{pad}    }}\n{pad}}}");
            text
        }
        Stmt::Break => "break;".to_owned(),
        Stmt::Continue => "continue;".to_owned(),
        Stmt::Return(None) => "return;".to_owned(),
        Stmt::Return(Some(value)) => format!("return {};", expression(value)),
        Stmt::Call { function, pointers, arguments, result } => {
            let call = call(*function, pointers, arguments);
            match result {
                Some(name) => format!("let {name} = {call};"),
                None => format!("_ = {call};"),
            }
        }
        Stmt::Atomic { function, place: at, value, result } => {
            let old = result.as_ref().map(|name| format!("let {name} = ")).unwrap_or_default();
            format!("{old}{function}(&{}, {});", place(at), expression(value))
        }
        Stmt::AtomicMultiply { place: at, value } => {
            atomic_multiplication(&place(at), &expression(value), &pad)
        }
        Stmt::Pointer { name, place: at } => format!("let {name} = &{};", place(at)),
        Stmt::Text(text) => text.clone(),
    };
    format!("{pad}{line}\n")
}

/// Returns an atomic multiplication, which WGSL lacks, as a compare-exchange loop.
fn atomic_multiplication(place: &str, factor: &str, pad: &str) -> String {
    format!(
        "{{\n{pad}    let cell = &{place};\n{pad}    let factor = {factor};\n{pad}    loop {{\n\
         {pad}        let old = atomicLoad(cell);\n\
         {pad}        if atomicCompareExchangeWeak(cell, old, old * factor).exchanged {{\n\
         {pad}            break;\n{pad}        }}\n{pad}    }}\n{pad}}}"
    )
}

fn loop_text(stmt: &Stmt, depth: usize) -> String {
    let Stmt::Loop { kind, counter, iterations: count, condition, body } = stmt else {
        return String::new();
    };
    let pad = "    ".repeat(depth);
    let body = block(body, depth + 1);
    let condition = condition.as_ref().map(expression);
    match kind {
        LoopKind::For => format!(
            "{pad}for (var {counter} = 0u; {counter} < {count}u; {counter}++) {{\n{body}{pad}}}\n"
        ),
        LoopKind::Down => format!(
            "{pad}for (var {counter} = {count}u; {counter} > 0u; {counter}--) {{\n{body}{pad}}}\n"
        ),
        LoopKind::ByTwo => {
            let end = 2 * count;
            format!(
                "{pad}for (var {counter} = 0u; {counter} < {end}u; {counter} += 2u) {{\n\
                 {body}{pad}}}\n"
            )
        }
        LoopKind::Limited => {
            let limit = condition.map_or(format!("{count}u"), |c| format!("min({count}u, {c})"));
            format!(
                "{pad}for (var {counter} = 0u; {counter} < {limit}; {counter}++) {{\n\
                 {body}{pad}}}\n"
            )
        }
        LoopKind::While => {
            let also = condition.map(|condition| format!(" && {condition}")).unwrap_or_default();
            format!(
                "{pad}var {counter} = 0u;\n{pad}while {counter} < {count}u{also} {{\n\
                 {pad}    {counter}++;\n{body}{pad}}}\n"
            )
        }
        LoopKind::Continuing => {
            let exit = condition
                .map(|condition| {
                    format!("{pad}    if {condition} {{\n{pad}        break;\n{pad}    }}\n")
                })
                .unwrap_or_default();
            format!(
                "{pad}var {counter} = 0u;\n{pad}loop {{\n{exit}{body}{pad}    continuing {{\n\
                 {pad}        {counter}++;\n{pad}        break if {counter} >= {count}u;\n\
                 {pad}    }}\n{pad}}}\n"
            )
        }
    }
}

fn expression(expr: &Expr) -> String {
    match &expr.node {
        Node::Literal(value) => match expr.ty {
            Type::Scalar(scalar) => literal(*value, scalar),
            _ => format!("{}()", expr.ty),
        },
        Node::Read(from) => place(from),
        Node::Op(op, operands) => operation(*op, &expr.ty, operands),
        Node::Call(function, pointers, arguments) => call(*function, pointers, arguments),
    }
}

fn call(function: usize, pointers: &[Place], arguments: &[Expr]) -> String {
    let pointers = pointers.iter().map(|pointer| format!("&{}", place(pointer)));
    let arguments: Vec<String> = pointers.chain(arguments.iter().map(expression)).collect();
    format!("f{function}({})", arguments.join(", "))
}

fn list(operands: &[Expr]) -> String {
    operands.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn operation(op: Op, ty: &Type, operands: &[Expr]) -> String {
    let mut text = String::new();
    let mut parts = op.text.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (placeholder, rest) = part.split_at(1);
        match placeholder {
            "T" => text.push_str(&ty.to_string()),
            "W" => text.push_str(&ty.identifier()),
            "*" => text.push_str(&list(operands)),
            digit => {
                let index = usize::from(digit.as_bytes()[0] - b'0');
                text.push_str(&expression(&operands[index]));
            }
        }
        text.push_str(rest);
    }
    text
}

fn literal(value: Literal, scalar: Scalar) -> String {
    match (value, scalar) {
        (Literal::Bool(value), _) => value.to_string(),
        (Literal::Int(value), Scalar::U32) => format!("{value}u"),
        (Literal::Int(value), Scalar::I16) => format!("i16({value})"),
        (Literal::Int(value), Scalar::U16) => format!("u16({value})"),
        (Literal::Int(value), Scalar::U64) => format!("{value}lu"),
        (Literal::Int(value), Scalar::I64) if value >= 0 => format!("{value}li"),
        (Literal::Int(value), Scalar::I64) => format!("(-{}li)", -value),
        (Literal::Int(value), _) if value >= 0 => format!("{value}i"),
        (Literal::Int(value), _) => format!("i32({value})"),
        (Literal::Float(value), Scalar::F16) => format!("{value:?}h"),
        (Literal::Float(value), Scalar::F64) => format!("{value:?}lf"),
        (Literal::Float(value), _) => format!("{value:?}f"),
    }
}

fn place(place: &Place) -> String {
    let mut text = place.root.clone();
    for access in &place.path {
        match access {
            Access::Member(i) => {
                let _ = write!(text, ".m{i}");
            }
            Access::Component(i) => text.push_str([".x", ".y", ".z", ".w"][*i]),
            Access::Index(index, len, reduction) | Access::Own(index, len, reduction) => {
                let index = match (&index.node, reduction) {
                    (Node::Literal(Literal::Int(value)), _) => (value % *len as i128).to_string(),
                    (_, IndexReduction::Remainder) => format!("{} % {len}u", expression(index)),
                    (_, IndexReduction::Min) => format!("min({}, {}u)", expression(index), len - 1),
                    (_, IndexReduction::None) => expression(index),
                };
                let _ = write!(text, "[{index}]");
            }
            Access::Runtime(index, reduction) => {
                let (index, length) = (expression(index), format!("arrayLength(&{text})"));
                let _ = match reduction {
                    IndexReduction::Remainder => write!(text, "[{index} % {length}]"),
                    IndexReduction::Min => write!(text, "[min({index}, {length} - 1u)]"),
                    IndexReduction::None => write!(text, "[{index}]"),
                };
            }
        }
    }
    text
}
