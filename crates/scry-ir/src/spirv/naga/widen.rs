//! Widens integers by the sign of what is converted.
//!
//! `u64(x)` of an `i32` repeats the sign bit, and `i64(x)` of a `u32` does not: WGSL converts the
//! value where it can, and else its two's complement. naga's writer chooses the instruction by the
//! type that is converted to instead. So a conversion that changes both width and sign is made two:
//! first the width, then the sign.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Expression, Function, Handle, Module, ScalarKind};

use crate::spirv::naga::shifts::{each_function, redirect};
use crate::wgsl::naga::handles;

type Expr = Handle<Expression>;

/// True if some conversion of the module is to be made two.
pub(crate) fn needed(module: &Module, info: &ModuleInfo) -> bool {
    each_function(module, info).any(|(function, info)| {
        let mut expressions = function.expressions.iter();
        expressions.any(|(_, expression)| source_kind(module, info, expression).is_some())
    })
}

/// Makes two of every conversion that needs it. `info` is the validator's of this very module.
pub(crate) fn apply(module: &mut Module, info: &ModuleInfo) {
    let kinds: Vec<Vec<_>> = each_function(module, info)
        .map(|(function, info)| {
            let expressions = function.expressions.iter();
            expressions.map(|(_, expression)| source_kind(module, info, expression)).collect()
        })
        .collect();
    let functions = handles::functions_mut(&mut module.functions, &mut module.entry_points);
    for (function, kinds) in functions.into_iter().zip(kinds) {
        if kinds.iter().any(Option::is_some) {
            rebuild(function, &kinds);
        }
    }
}

/// The kind of what is converted, if the conversion makes it wider and changes its sign.
fn source_kind(
    module: &Module,
    info: &FunctionInfo,
    expression: &Expression,
) -> Option<ScalarKind> {
    let Expression::As { expr, kind, convert: Some(width) } = *expression else {
        return None;
    };
    let source = info[expr].ty.inner_with(&module.types).scalar()?;
    let changes_sign = matches!(
        (source.kind, kind),
        (ScalarKind::Sint, ScalarKind::Uint) | (ScalarKind::Uint, ScalarKind::Sint)
    );
    (changes_sign && width > source.width).then_some(source.kind)
}

/// Copies the function's expressions into a new arena, each widening before its change of sign.
fn rebuild(function: &mut Function, kinds: &[Option<ScalarKind>]) {
    let old = std::mem::take(&mut function.expressions);
    let spans: Vec<_> = old.iter().map(|(handle, _)| old.get_span(handle)).collect();
    let new = &mut function.expressions;
    // For each old expression the first of the new ones that stand for it, and the last.
    let mut places: Vec<(Expr, Expr)> = Vec::with_capacity(kinds.len());
    for (at, mut expression) in old.into_inner().into_iter().enumerate() {
        handles::in_expression(&mut expression, &mut |h| *h = places[h.index()].1);
        let mut first = None;
        if let (Some(kind), Expression::As { expr, convert, .. }) = (kinds[at], &mut expression) {
            let widened = Expression::As { expr: *expr, kind, convert: *convert };
            *expr = new.append(widened, spans[at]);
            first = Some(*expr);
        }
        let last = new.append(expression, spans[at]);
        places.push((first.unwrap_or(last), last));
    }
    redirect(function, &places);
}

#[cfg(test)]
mod tests {
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    use super::*;

    fn validate(module: &Module) -> ModuleInfo {
        Validator::new(ValidationFlags::all(), Capabilities::SHADER_INT64)
            .validate(module)
            .unwrap_or_else(|e| panic!("{:#?}", e.into_inner()))
    }

    /// The kinds and widths of the conversions of `main`, in order.
    fn conversions_after(body: &str) -> Vec<(ScalarKind, u8)> {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> u: array<u32>;
            @group(0) @binding(1) var<storage, read_write> l: array<vec2<u64>>;
            @group(0) @binding(2) var<storage, read_write> i: array<vec2<i32>>;
            @compute @workgroup_size(1) fn main() {{ {body} }}"
        );
        let mut module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|e| panic!("{}", e.emit_to_string(&source)));
        let info = validate(&module);
        apply(&mut module, &info);
        assert!(!needed(&module, &validate(&module)));
        let expressions = module.entry_points[0].function.expressions.iter();
        let conversions = expressions.filter_map(|(_, expression)| match *expression {
            Expression::As { kind, convert: Some(width), .. } => Some((kind, width)),
            _ => None,
        });
        conversions.collect()
    }

    #[test]
    fn the_width_changes_before_the_sign() {
        use ScalarKind::{Sint, Uint};
        assert_eq!(conversions_after("l[0] = vec2<u64>(i[0]);"), [(Sint, 8), (Uint, 8)]);
        let both = "let a = i64(u[0]); if a > 1li { u[1] = u32(a >> 32u); }";
        assert_eq!(conversions_after(both), [(Uint, 8), (Sint, 8), (Uint, 4)]);
    }

    #[test]
    fn other_conversions_are_left_alone() {
        use ScalarKind::{Float, Sint, Uint};
        let body = "let a = u64(u[0]); u[1] = u32(i32(u[2])); u[3] = u32(a); i[0] = vec2i(l[0]);
            u[4] = u32(f32(u[5]));";
        let kept = [(Uint, 8), (Sint, 4), (Uint, 4), (Uint, 4), (Sint, 4), (Float, 4), (Uint, 4)];
        assert_eq!(conversions_after(body), kept);
    }
}
