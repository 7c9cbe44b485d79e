//! Takes shift amounts modulo the width of what is shifted, as WGSL has it.
//!
//! SPIR-V leaves the result of a shift by the width or more undefined, and naga's writer hands the
//! amount through. Amounts that are constants are checked when the source is read, so only those
//! known at run time get a mask.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    Arena, BinaryOperator, Expression, Function, Handle, Literal, Module, Range, Span, Statement,
    TypeInner, VectorSize,
};

use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// The mask that one shift needs.
#[derive(Clone, Copy)]
struct Mask {
    bits: u32,
    size: Option<VectorSize>,
}

/// True if some shift of the module needs a mask.
pub(crate) fn needed(module: &Module, info: &ModuleInfo) -> bool {
    each_function(module, info).any(|(function, info)| {
        let mut expressions = function.expressions.iter();
        expressions.any(|(_, expression)| mask(module, function, info, expression).is_some())
    })
}

/// Masks every shift amount that is not a constant. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let masks: Vec<_> =
        each_function(module, info).map(|(function, info)| masks(module, function, info)).collect();
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, masks) in functions.into_iter().zip(masks) {
        if masks.iter().any(Option::is_some) {
            rebuild(function, &masks);
        }
    }
}

pub(crate) fn each_function<'a>(
    module: &'a Module,
    info: &'a ModuleInfo,
) -> impl Iterator<Item = (&'a Function, &'a FunctionInfo)> {
    let mut all = Vec::with_capacity(module.functions.len() + module.entry_points.len());
    for (handle, function) in module.functions.iter() {
        all.push((function, &info[handle]));
    }
    for (at, entry) in module.entry_points.iter().enumerate() {
        all.push((&entry.function, info.get_entry_point(at)));
    }
    all.into_iter()
}

fn masks(module: &Module, function: &Function, info: &FunctionInfo) -> Vec<Option<Mask>> {
    let expressions = function.expressions.iter();
    expressions.map(|(_, expression)| mask(module, function, info, expression)).collect()
}

fn mask(
    module: &Module,
    function: &Function,
    info: &FunctionInfo,
    expression: &Expression,
) -> Option<Mask> {
    let Expression::Binary {
        op: BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight,
        left,
        right,
    } = *expression
    else {
        return None;
    };
    if is_constant(&function.expressions, right) {
        return None;
    }
    let (scalar, size) = match *info[left].ty.inner_with(&module.types) {
        TypeInner::Scalar(scalar) => (scalar, None),
        TypeInner::Vector { size, scalar } => (scalar, Some(size)),
        _ => return None,
    };
    let bits = u32::from(scalar.width) * 8 - 1;
    let masked = is_masked(&function.expressions, right, bits);
    (!masked).then_some(Mask { bits, size })
}

/// True if an amount has a mask already, the source's or ours.
fn is_masked(expressions: &Arena<Expression>, amount: Expr, bits: u32) -> bool {
    let Expression::Binary { op: BinaryOperator::And, right, .. } = expressions[amount] else {
        return false;
    };
    let value = match expressions[right] {
        Expression::Splat { value, .. } => value,
        _ => right,
    };
    matches!(expressions[value], Expression::Literal(Literal::U32(mask)) if mask <= bits)
}

fn is_constant(expressions: &Arena<Expression>, amount: Expr) -> bool {
    match &expressions[amount] {
        Expression::Literal(_) | Expression::Constant(_) | Expression::ZeroValue(_) => true,
        Expression::Splat { value, .. } => is_constant(expressions, *value),
        Expression::Compose { components, .. } => {
            components.iter().all(|&part| is_constant(expressions, part))
        }
        _ => false,
    }
}

/// Copies the function's expressions into a new arena, each masked shift behind its mask.
fn rebuild(function: &mut Function, masks: &[Option<Mask>]) {
    let old = std::mem::take(&mut function.expressions);
    let spans: Vec<_> = old.iter().map(|(handle, _)| old.get_span(handle)).collect();
    let new = &mut function.expressions;
    let mut literals: Vec<(u32, Expr)> = Vec::new();
    for mask in masks.iter().flatten() {
        if !literals.iter().any(|(bits, _)| *bits == mask.bits) {
            let literal = Expression::Literal(Literal::U32(mask.bits));
            literals.push((mask.bits, new.append(literal, Span::UNDEFINED)));
        }
    }
    // For each old expression the first of the new ones that stand for it, and the last.
    let mut places: Vec<(Expr, Expr)> = Vec::with_capacity(masks.len());
    for (at, mut expression) in old.into_inner().into_iter().enumerate() {
        handles::in_expression(&mut expression, &mut |h| *h = places[h.index()].1);
        let mut first = None;
        if let (Some(mask), Expression::Binary { right, .. }) = (masks[at], &mut expression) {
            let literal = literals.iter().find(|(bits, _)| *bits == mask.bits);
            let mut value = literal.expect("made above").1;
            if let Some(size) = mask.size {
                value = new.append(Expression::Splat { size, value }, spans[at]);
                first = Some(value);
            }
            let masked = Expression::Binary { op: BinaryOperator::And, left: *right, right: value };
            *right = new.append(masked, spans[at]);
            first = first.or(Some(*right));
        }
        let last = new.append(expression, spans[at]);
        places.push((first.unwrap_or(last), last));
    }
    redirect(function, &places);
}

/// Points everything outside the arena at the new expressions.
pub(crate) fn redirect(function: &mut Function, places: &[(Expr, Expr)]) {
    for (_, local) in function.local_variables.iter_mut() {
        if let Some(init) = &mut local.init {
            *init = places[init.index()].1;
        }
    }
    let names = std::mem::take(&mut function.named_expressions);
    function.named_expressions =
        names.into_iter().map(|(handle, name)| (places[handle.index()].1, name)).collect();
    handles::each_statement(&mut function.body, &mut |statement| {
        if let Statement::Emit(range) = statement {
            if let Some((first, last)) = range.first_and_last() {
                let (first, last) = (places[first.index()].0, places[last.index()].1);
                *range = Range::new_from_bounds(first, last);
            }
        } else {
            handles::in_statement(statement, &mut |h| *h = places[h.index()].1);
        }
    });
}

#[cfg(test)]
mod tests {
    use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

    use super::*;

    fn validate(module: &Module) -> ModuleInfo {
        Validator::new(ValidationFlags::all(), Capabilities::SHADER_INT64)
            .validate(module)
            .unwrap_or_else(|e| panic!("{:#?}", e.into_inner()))
    }

    fn parsed(body: &str) -> (Module, ModuleInfo) {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> u: array<u32>;
            @group(0) @binding(1) var<storage, read_write> v: array<vec3i>;
            @group(0) @binding(2) var<storage, read_write> w: array<u64>;
            fn other(x: u32) -> u32 {{ return x + 1u; }}
            @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
        let info = validate(&module);
        (module, info)
    }

    /// The masks of the shifts of `main`, in order.
    fn masks_after(body: &str) -> Vec<u32> {
        let (mut module, info) = parsed(body);
        apply(&mut module, &info);
        let info = validate(&module);
        assert!(!needed(&module, &info));
        masks_of(&module)
    }

    fn masks_of(module: &Module) -> Vec<u32> {
        let expressions = &module.entry_points[0].function.expressions;
        let literal = |h: Expr| match expressions[h] {
            Expression::Literal(Literal::U32(bits)) => Some(bits),
            _ => None,
        };
        let amounts = expressions.iter().filter_map(|(_, e)| match e {
            Expression::Binary {
                op: BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight,
                right,
                ..
            } => Some(*right),
            _ => None,
        });
        amounts
            .filter_map(|amount| match expressions[amount] {
                Expression::Binary { op: BinaryOperator::And, right, .. } => {
                    match expressions[right] {
                        Expression::Splat { value, .. } => literal(value),
                        _ => literal(right),
                    }
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn amounts_known_at_run_time_are_masked() {
        assert_eq!(masks_after("u[0] = u[1] << u[2];"), [31]);
        assert_eq!(masks_after("v[0] = v[1] >> vec3u(u[2]);"), [31]);
        assert_eq!(masks_after("w[0] = w[1] >> u[2];"), [63]);
        assert_eq!(masks_after("u[0] = (u[1] << u[2]) >> (u[3] << u[4]);"), [31, 31, 31]);
    }

    #[test]
    fn handles_stay_right_round_the_masks() {
        let body = "var a = u[0] >> u[1]; let b = other(a) << a; var c = vec3u(3u);
            for (var i = 0u; i < (b >> a); i++) { if (i << 1u) == a { continue; } c = c << c; }
            switch a >> b { case 1u: { u[a << b] = c[a >> 3u]; } default: {} }";
        assert_eq!(masks_after(body).len(), 6);
    }

    #[test]
    fn constant_amounts_are_left_alone() {
        let (module, info) =
            parsed("u[0] = (u[1] << 3u) >> 31u; v[0] = v[1] << vec3u(1u, 2u, 3u);");
        assert!(!needed(&module, &info));
        let (module, info) = parsed("let s = 4u; u[0] = u[1] << s; v[0] = v[1] << vec3u(s);");
        assert!(!needed(&module, &info));
        let (module, info) = parsed("u[0] = u[1] << (u[2] & 15u);");
        assert!(!needed(&module, &info));
        let (module, info) = parsed("u[0] = u[1] << (u[2] & 32u);");
        assert!(needed(&module, &info));
        let (module, info) = parsed("var s = 4u; u[0] = u[1] << s;");
        assert!(needed(&module, &info));
    }
}
