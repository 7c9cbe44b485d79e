//! Tests of constant expressions with values at the limits of their types, in every position that
//! allows one.

use scry_ir::ShaderErrorKind;

use crate::compile_to_all;

/// Unary functions.
const UNARY: &[&str] = &[
    "abs",
    "sign",
    "floor",
    "round",
    "trunc",
    "sqrt",
    "inverseSqrt",
    "log",
    "log2",
    "exp",
    "exp2",
    "sin",
    "acos",
    "acosh",
    "atanh",
    "sinh",
    "degrees",
    "saturate",
    "fract",
    "length",
    "normalize",
    "countOneBits",
    "countLeadingZeros",
    "firstLeadingBit",
    "firstTrailingBit",
    "reverseBits",
    "i32",
    "u32",
    "f32",
    "f16",
    "bool",
    "i64",
    "u64",
    "f64",
    "i16",
    "u16",
    "bitcast<u32>",
    "bitcast<f32>",
    "bitcast<vec2<f16>>",
    "quantizeToF16",
    "pack4x8snorm",
    "pack2x16float",
    "unpack2x16float",
    "unpack4xI8",
    "pack4xI8Clamp",
    "frexp",
    "modf",
    "-",
    "~",
    "!",
    "vec3",
    "mat2x2",
    "transpose",
    "determinant",
    "any",
    "all",
    "array",
];

/// Binary functions.
const BINARY: &[&str] = &[
    "min",
    "max",
    "pow",
    "atan2",
    "step",
    "ldexp",
    "dot",
    "cross",
    "distance",
    "reflect",
    "dot4I8Packed",
    "dot4U8Packed",
    "vec2",
    "array",
    "mat2x2",
];

/// Operators.
const OPERATORS: &[&str] = &["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "==", "&&"];

/// Ternary functions.
const TERNARY: &[&str] =
    &["clamp", "mix", "fma", "smoothstep", "select", "extractBits", "refract", "faceForward"];

/// Operands.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "31",
    "32",
    "33",
    "2147483647",
    "(-2147483647 - 1)",
    "4294967295u",
    "0u",
    "32u",
    "i32(-2147483648)",
    "9223372036854775807",
    "(-9223372036854775807 - 1)",
    "1.0",
    "-0.5",
    "1e38f",
    "3.4e38",
    "1e308",
    "1e-45f",
    "65504h",
    "-1h",
    "1li",
    "i64(-9223372036854775807 - 1)",
    "18446744073709551615lu",
    "1.7e308lf",
    "true",
    "vec2(1, -1)",
    "vec2<f32>(3e38)",
    "vec3(0.0)",
    "vec4<i32>(-2147483647 - 1)",
    "vec2<bool>(true)",
    "mat2x2(1.0, 2.0, 3.0, 4.0)",
    "array(1, 2)",
    "vec2<f32>()",
    "1u",
];

/// Sources with an expression `X`.
const POSITIONS: &[&str] = &[
    "const C = X; @compute @workgroup_size(1) fn main() {}",
    "@compute @workgroup_size(1) fn main() { let x = X; }",
    "override O = 1; @compute @workgroup_size(1) fn main() { var o = O; let x = X; }",
    "@compute @workgroup_size(X) fn main() {}",
    "var<workgroup> w: array<u32, X>; @compute @workgroup_size(1) fn main() { w[0] = 1u; }",
    "struct S { @size(X) a: u32, @align(X) b: u32 } \
         @group(0) @binding(0) var<storage, read_write> s: S; \
         @compute @workgroup_size(1) fn main() { s.a = 1u; }",
    "override O: f32 = f32(X); @compute @workgroup_size(1) fn main() { var o = O; }",
];

#[test]
fn extreme_constants_cause_no_compiler_failure() {
    let mut expressions: Vec<String> = Vec::new();
    for a in VALUES {
        expressions.extend(UNARY.iter().map(|f| format!("{f}({a})")));
        for index in ["0", "1", "-1", "4", "4294967295u", "1.0"] {
            expressions.push(format!("({a})[{index}]"));
        }
        for b in VALUES {
            expressions.extend(BINARY.iter().map(|f| format!("{f}({a}, {b})")));
            expressions.extend(OPERATORS.iter().map(|sign| format!("({a}) {sign} ({b})")));
            let others = ["0", "33u", "1.0", "true"];
            let triples =
                TERNARY.iter().flat_map(|f| others.map(|c| format!("{f}({a}, {b}, {c})")));
            expressions.extend(triples);
        }
    }
    // All of them would run for a minute: tests one in 29, unless `SCRY_FUZZ_SEEDS` is set.
    let step = std::env::var("SCRY_FUZZ_SEEDS").map_or(29, |_| 1);
    for (at, expression) in expressions.iter().enumerate().filter(|(at, _)| at % step == 0) {
        let source = format!("enable f16, wgpu_int16; {}", POSITIONS[at / step % POSITIONS.len()]);
        let source = source.replace('X', expression);
        if let Err(error) = compile_to_all(&source) {
            assert_ne!(error.kind, ShaderErrorKind::Compiler, "{error}\n{source}");
        }
    }
}
