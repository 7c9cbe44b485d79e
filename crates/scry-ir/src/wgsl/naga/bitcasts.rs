//! Rejects bitcasts that naga would get wrong.
//!
//! naga keeps of the type in `bitcast<T>(e)` only whether it is a float, signed or unsigned, and
//! takes width and number of components from `e`: `bitcast<vec4<f16>>` of a `vec2<u32>` becomes a
//! `vec2<f32>`. So the type is read from the source once more, and compared.

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{Expression, Function, Module, Scalar, ScalarKind, Span, TypeInner, VectorSize};

use crate::ShaderErrorKind;
use crate::wgsl::declarations::Declarations;
use crate::wgsl::lex::Kind;
use crate::wgsl::report::Report;

const HELP: &str = "help: for two f16 in one u32 write `vec2<f16>(unpack2x16float(word))` and \
                    `pack2x16float(vec2<f32>(pair))`";

const NOTE: &str = "note: `bitcast` is supported only between types whose components have one \
                    width";

/// Aliases of aliases are followed so far.
const MOST_ALIASES: usize = 64;

/// The width and the number of components of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    width: u8,
    components: u8,
}

impl Shape {
    fn bits(self) -> u32 {
        u32::from(self.width) * u32::from(self.components) * 8
    }
}

/// Checks every bitcast of a module. `info` is the validator's of this very module.
pub(crate) fn check(
    module: &Module,
    info: &ModuleInfo,
    declarations: &Declarations<'_>,
) -> Result<(), Box<Report>> {
    for (handle, function) in module.functions.iter() {
        check_function(module, function, &info[handle], declarations)?;
    }
    for (at, entry) in module.entry_points.iter().enumerate() {
        check_function(module, &entry.function, info.get_entry_point(at), declarations)?;
    }
    Ok(())
}

fn check_function(
    module: &Module,
    function: &Function,
    info: &FunctionInfo,
    declarations: &Declarations<'_>,
) -> Result<(), Box<Report>> {
    for (handle, expression) in function.expressions.iter() {
        let Expression::As { expr, convert: None, .. } = *expression else { continue };
        let span = function.expressions.get_span(handle);
        let given = info[expr].ty.inner_with(&module.types);
        let Some(text) = template(declarations, span) else { continue };
        if written(declarations, text.clone()) != shape(given) {
            return Err(reject(declarations, text, given, span));
        }
    }
    Ok(())
}

fn reject(
    declarations: &Declarations<'_>,
    text: std::ops::Range<usize>,
    given: &TypeInner,
    span: Span,
) -> Box<Report> {
    let to: String = text.clone().map(|at| declarations.text(at)).collect();
    let from = name(given);
    let bits = |shape: Option<Shape>| shape.map_or(0, Shape::bits);
    let (wanted, present) = (bits(written(declarations, text)), bits(shape(given)));
    let why = if wanted == present || wanted == 0 {
        "its components have another width, which the compiler does not support".to_owned()
    } else {
        format!("it has {wanted} bits, and {from} has {present}")
    };
    let message = format!("a value of type {from} cannot be reinterpreted as {to}: {why}");
    Box::new(Report::new(ShaderErrorKind::Validation, message).at(span, "this bitcast").note(HELP))
}

/// A cause and a remedy where the compiler rejects a statement because it has mistaken the type of
/// a bitcast.
pub(crate) fn advice(
    report: &Report,
    declarations: &Declarations<'_>,
) -> Option<[&'static str; 2]> {
    if !["type", "accessor"].iter().any(|word| report.message.contains(word)) {
        return None;
    }
    let place = report.labels.first()?.0.to_range()?.start as u32;
    let (tokens, ends) =
        (declarations.tokens, |at: &usize| matches!(declarations.text(*at), ";" | "{" | "}"));
    let here = tokens.partition_point(|token| token.end <= place);
    let start = (0..here).rev().find(ends).map_or(0, |at| at + 1);
    let end = (here..tokens.len()).find(ends).unwrap_or(tokens.len());
    let is_bitcast = (start..end).any(|at| declarations.text(at) == "bitcast");
    let is_half = |at: usize| matches!(declarations.text(at), "f16" | "vec2h" | "vec3h" | "vec4h");
    (is_bitcast && (0..tokens.len()).any(is_half)).then_some([NOTE, HELP])
}

/// The tokens of the type in a bitcast.
fn template(declarations: &Declarations<'_>, bitcast: Span) -> Option<std::ops::Range<usize>> {
    let start = bitcast.to_range()?.start as u32;
    let tokens = declarations.tokens;
    let at = tokens.binary_search_by_key(&start, |token| token.start).ok()?;
    if declarations.text(at) != "bitcast" || tokens.get(at + 1)?.kind != Kind::TemplateOpen {
        return None;
    }
    let mut depth = 0usize;
    for (end, token) in tokens.iter().enumerate().skip(at + 1) {
        match token.kind {
            Kind::TemplateOpen => depth += 1,
            Kind::TemplateClose if depth == 1 => return Some(at + 2..end),
            Kind::TemplateClose => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The shape of a type as it is written; nothing if it is no scalar and no vector.
fn written(declarations: &Declarations<'_>, mut tokens: std::ops::Range<usize>) -> Option<Shape> {
    for _ in 0..MOST_ALIASES {
        let first = declarations.text(tokens.start);
        if let Some(alias) = declarations.aliases.get(first) {
            tokens = alias.clone();
            continue;
        }
        if let Some(width) = scalar_width(first) {
            return Some(Shape { width, components: 1 });
        }
        let mut rest = first.strip_prefix("vec")?.chars();
        let components = rest.next()?.to_digit(10)? as u8;
        if let Some(suffix) = rest.next() {
            let width = if suffix == 'h' { 2 } else { 4 };
            return Some(Shape { width, components });
        }
        let element = tokens.start + 2..tokens.end.saturating_sub(1);
        let width = written_scalar(declarations, element)?;
        return Some(Shape { width, components });
    }
    None
}

fn written_scalar(declarations: &Declarations<'_>, tokens: std::ops::Range<usize>) -> Option<u8> {
    let mut name = declarations.text(tokens.start);
    for _ in 0..MOST_ALIASES {
        match declarations.aliases.get(name) {
            Some(alias) => name = declarations.text(alias.start),
            None => return scalar_width(name),
        }
    }
    None
}

fn scalar_width(name: &str) -> Option<u8> {
    Some(match name {
        "f16" | "i16" | "u16" => 2,
        "f32" | "i32" | "u32" => 4,
        "f64" | "i64" | "u64" => 8,
        _ => return None,
    })
}

fn shape(ty: &TypeInner) -> Option<Shape> {
    match *ty {
        TypeInner::Scalar(scalar) => Some(Shape { width: scalar.width, components: 1 }),
        TypeInner::Vector { size, scalar } => {
            Some(Shape { width: scalar.width, components: size as u8 })
        }
        _ => None,
    }
}

/// A scalar or vector type in WGSL.
fn name(ty: &TypeInner) -> String {
    let scalar = |scalar: Scalar| {
        let letter = match scalar.kind {
            ScalarKind::Float | ScalarKind::AbstractFloat => 'f',
            ScalarKind::Sint | ScalarKind::AbstractInt => 'i',
            ScalarKind::Uint => 'u',
            ScalarKind::Bool => return "bool".to_owned(),
        };
        format!("{letter}{}", u32::from(scalar.width) * 8)
    };
    match *ty {
        TypeInner::Scalar(one) => scalar(one),
        TypeInner::Vector { size, scalar: one } => {
            let size = match size {
                VectorSize::Bi => 2,
                VectorSize::Tri => 3,
                VectorSize::Quad => 4,
            };
            format!("vec{size}<{}>", scalar(one))
        }
        _ => "another type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Program, ShaderError};

    fn read(body: &str) -> Result<Program, ShaderError> {
        Program::parse(&format!(
            "enable f16; enable wgpu_int16;
            alias Word = u32; alias Pair = vec2<Half>; alias Half = f16; alias Same = Pair;
            alias Four = vec4h;
            @group(0) @binding(0) var<storage, read_write> u: array<vec4u>;
            @group(0) @binding(1) var<storage, read_write> h: array<vec4h>;
            @group(0) @binding(2) var<storage, read_write> d: array<u64>;
            @group(0) @binding(3) var<storage, read_write> s: array<u16>;
            @compute @workgroup_size(1) fn main() {{\n{body}\n}}"
        ))
    }

    fn rejected(body: &str) -> ShaderError {
        read(body).err().unwrap_or_else(|| panic!("accepted: {body}"))
    }

    #[test]
    fn types_of_other_widths_are_rejected() {
        for cast in [
            "bitcast<vec4<f16>>(u[0].xy)",
            "bitcast<vec4h>(u[0].xy)",
            "bitcast<vec2<f16>>(u[0].x)",
            "bitcast<Pair>(u[0].x)",
            "bitcast<Same>(1u)",
            "bitcast<Four>(vec2f())",
            "bitcast<vec2<Half>>(1.0f)",
            "bitcast<u32>(h[0].xy)",
            "bitcast<Word>(h[0].xy)",
            "bitcast<i32>(h[0].zw)",
            "bitcast<f32>(h[0].xy)",
            "bitcast<vec2<u32>>(h[0])",
            "bitcast<vec2u>(h[0])",
            "bitcast<vec2u>(d[0])",
            "bitcast<u64>(u[0].xy)",
            "bitcast<u32>(h[0].x)",
            "bitcast<f16>(u[0].x)",
            "bitcast < /* of two */ vec2 < f16 > > ( u[0].x )",
        ] {
            let error = rejected(&format!("let x = {cast};"));
            assert!(error.message.contains("cannot be reinterpreted as"), "{cast}: {error}");
            assert!(error.rendered.contains(cast), "{error}");
            assert_eq!(error.location.map(|at| at.line), Some(9), "{cast}");
        }
        let error = rejected("let x = bitcast<f16>(u[0].x);");
        assert!(error.message.contains("it has 16 bits, and u32 has 32"), "{error}");
        let unused = Program::parse(
            "enable f16; fn unused(v: vec2<u32>) { let x = bitcast<vec4<f16>>(v); }
            @compute @workgroup_size(1) fn main() {}",
        );
        assert!(unused.is_err());
    }

    #[test]
    fn types_of_one_width_are_reinterpreted() {
        for cast in [
            "u[0].x = bitcast<u32>(f32(u[0].y));",
            "u[0] = bitcast<vec4<u32>>(vec4f(u[1]));",
            "u[0] = bitcast<vec4u>(bitcast<vec4<f32>>(u[0]));",
            "u[0].x = bitcast<Word>(bitcast<i32>(u[0].y));",
            "u[0].x = bitcast<u32>(1.5);",
            "u[0].x = bitcast<u32>(-1);",
            "h[0] = bitcast<vec4<f16>>(h[1]);",
            "h[0] = bitcast<Four>(h[1]);",
            "let pair: vec2<f16> = bitcast<Same>(h[1].xy);",
            "h[0].x = bitcast<f16>(s[0]);",
            "s[0] = bitcast<u16>(h[0].x);",
            "d[0] = bitcast<u64>(bitcast<f64>(d[1]));",
        ] {
            if let Err(error) = read(cast) {
                panic!("{cast}\n{error}");
            }
        }
    }

    #[test]
    fn where_the_compiler_notices_first_the_remedy_is_told() {
        for body in [
            "let x: vec4<f16> = bitcast<vec4<f16>>(u[0].xy);",
            "let x: u32 = bitcast<u32>(h[0].xy);",
            "let x = bitcast<vec4<f16>>(u[0].xy).w;",
        ] {
            let error = rejected(body);
            assert!(error.rendered.contains("unpack2x16float"), "{body}\n{error}");
        }
    }
}
