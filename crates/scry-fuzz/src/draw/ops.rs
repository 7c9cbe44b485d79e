//! Tables of the operators and builtin functions that kernels use.

use crate::exact::Rule;
use crate::types::{Scalar, Type};

/// The type of an operand, given that of the result: `S` its scalar, `n` its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arg {
    /// As the result.
    Same,
    /// As the result, never a constant: naga does not evaluate `min` and `max` of `f64` constants.
    NonConstant,
    /// `S`.
    One,
    /// As the result; not zero if it is a constant.
    Divisor,
    /// `n` of u32; less than the bits of `S` if it is a constant.
    Shift,
    /// u32, never a constant.
    Position,
    /// `n` of u32.
    Unsigned,
    /// `n` of i32.
    Signed,
    /// `n` of f32.
    Float,
    /// `n` of bool.
    Bools,
    /// bool.
    Bool,
    /// `n` of i32, u32 or f32, the same for all such operands of an operation.
    Number,
    /// `n` of any integer type.
    Integer,
    /// A scalar or vector of i32 of this width.
    Ints(usize),
    /// A scalar or vector of u32 of this width.
    Uints(usize),
    /// A scalar or vector of f32 of this width.
    Floats(usize),
    /// A vector of `S`, of any width, the same for all such operands of an operation.
    Wide,
    /// A vector of bool, of any width.
    Flags,
}

use Arg::{
    Bool, Bools, Divisor, Flags, Float, Floats, Integer, Ints, NonConstant, Number, One, Position,
    Same, Shift, Signed, Uints, Unsigned, Wide,
};

/// A form of a value: the text of an [`Op`](crate::tree::Op), its operands, and the rule of its
/// bound.
pub(crate) type Form = (&'static str, &'static [Arg], Rule);

/// The rule of forms that have no floats, or do not enlarge them.
const ANY: Rule = Rule::Largest;

/// The rule of the determinants below, which are small integers.
const DETERMINANT: Rule = Rule::Fixed(6, 0);

/// Forms of integers of any size, scalars and vectors.
const INTEGERS: &[Form] = &[
    ("($0 + $1)", &[Same, Same], ANY),
    ("($0 - $1)", &[Same, Same], ANY),
    ("($0 * $1)", &[Same, Same], ANY),
    ("($0 + $1)", &[Same, One], ANY),
    ("($0 * $1)", &[One, Same], ANY),
    ("($0 / $1)", &[Same, Divisor], ANY),
    ("($0 % $1)", &[Same, Divisor], ANY),
    ("($0 & $1)", &[Same, Same], ANY),
    ("($0 | $1)", &[Same, Same], ANY),
    ("($0 ^ $1)", &[Same, Same], ANY),
    ("(~$0)", &[Same], ANY),
    ("($0 << $1)", &[Same, Shift], ANY),
    ("($0 >> $1)", &[Same, Shift], ANY),
    ("min($0, $1)", &[Same, Same], ANY),
    ("max($0, $1)", &[Same, Same], ANY),
    ("abs($0)", &[Same], ANY),
    ("clamp($0, min($1, $2), max($1, $2))", &[Same, NonConstant, Same], ANY),
    ("select($0, $1, $2)", &[Same, Same, Bools], ANY),
    ("select($0, $1, $2)", &[Same, Same, Bool], ANY),
];

/// Forms of integers of 32 bits, scalars and vectors.
const WORDS: &[Form] = &[
    ("countOneBits($0)", &[Same], ANY),
    ("countLeadingZeros($0)", &[Same], ANY),
    ("countTrailingZeros($0)", &[Same], ANY),
    ("firstLeadingBit($0)", &[Same], ANY),
    ("firstTrailingBit($0)", &[Same], ANY),
    ("reverseBits($0)", &[Same], ANY),
    ("extractBits($0, $1, $2)", &[Same, Position, Position], ANY),
    ("extractBits($0, $1 % 33u, $2 % 33u)", &[Same, Position, Position], ANY),
    ("insertBits($0, $1, $2, $3)", &[Same, Same, Position, Position], ANY),
    ("insertBits($0, $1, $2 % 33u, $3 % 33u)", &[Same, Same, Position, Position], ANY),
    ("$T($0)", &[Float], ANY),
    ("$T($0 * 1073741824.0)", &[Float], Rule::Scale(30)),
    ("$T($0)", &[Bools], ANY),
    ("bitcast<$T>(abs($0) + 1.0)", &[Float], Rule::PlusOneF32),
];

/// Forms of signed integers, scalars and vectors.
const SIGNED: &[Form] = &[("(-$0)", &[Same], ANY), ("sign($0)", &[Same], ANY)];

/// Forms of i32, scalars and vectors.
const I32S: &[Form] = &[("bitcast<$T>($0)", &[Unsigned], ANY), ("$T($0)", &[Integer], ANY)];

/// Forms of u32, scalars and vectors.
const U32S: &[Form] = &[("bitcast<$T>($0)", &[Signed], ANY), ("$T($0)", &[Integer], ANY)];

/// Forms of integers of 16 and 64 bits.
const OTHERS: &[Form] = &[("$T($0)", &[Integer], ANY), ("$T($0)", &[Bools], ANY)];

/// Forms of a scalar i32 alone.
const I32: &[Form] = &[
    ("dot($0, $1)", &[Wide, Wide], ANY),
    ("dot4I8Packed($0, $1)", &[Uints(1), Uints(1)], ANY),
    ("frexp(abs($0) + 1.0).exp", &[Float], Rule::PlusOneF32),
];

/// Forms of a scalar u32 alone.
const U32: &[Form] = &[
    ("dot($0, $1)", &[Wide, Wide], ANY),
    ("dot4U8Packed($0, $1)", &[Uints(1), Uints(1)], ANY),
    ("pack4xI8($0)", &[Ints(4)], ANY),
    ("pack4xU8($0)", &[Uints(4)], ANY),
    ("pack4xI8Clamp($0)", &[Ints(4)], ANY),
    ("pack4xU8Clamp($0)", &[Uints(4)], ANY),
    ("pack2x16float(abs($0) + 1.0)", &[Floats(2)], Rule::PlusOneF16),
];

/// Forms of vec4<i32> alone.
const I32X4: &[Form] = &[("unpack4xI8($0)", &[Uints(1)], ANY)];

/// Forms of vec4<u32> alone.
const U32X4: &[Form] = &[("unpack4xU8($0)", &[Uints(1)], ANY)];

/// Forms of bool, scalars and vectors.
const BOOLS: &[Form] = &[
    ("($0 < $1)", &[Number, Number], ANY),
    ("($0 <= $1)", &[Number, Number], ANY),
    ("($0 > $1)", &[Number, Number], ANY),
    ("($0 >= $1)", &[Number, Number], ANY),
    ("($0 == $1)", &[Number, Number], ANY),
    ("($0 != $1)", &[Number, Number], ANY),
    ("($0 == $1)", &[Same, Same], ANY),
    ("($0 != $1)", &[Same, Same], ANY),
    ("($0 & $1)", &[Same, Same], ANY),
    ("($0 | $1)", &[Same, Same], ANY),
    ("(!$0)", &[Same], ANY),
    ("select($0, $1, $2)", &[Same, Same, Bools], ANY),
    ("$T($0)", &[Number], ANY),
];

/// Forms of a scalar bool alone.
const BOOL: &[Form] = &[
    ("($0 && $1)", &[Same, Same], ANY),
    ("($0 || $1)", &[Same, Same], ANY),
    ("any($0)", &[Flags], ANY),
    ("all($0)", &[Flags], ANY),
];

/// Forms of floats of any size, scalars and vectors.
const FLOATS: &[Form] = &[
    ("($0 + $1)", &[Same, Same], Rule::Sum),
    ("($0 - $1)", &[Same, Same], Rule::Sum),
    ("($0 * $1)", &[Same, Same], Rule::Products(1)),
    ("($0 + $1)", &[Same, One], Rule::Sum),
    ("($0 - $1)", &[One, Same], Rule::Sum),
    ("($0 * $1)", &[Same, One], Rule::Products(1)),
    ("($0 / 4.0)", &[Same], Rule::Scale(-2)),
    ("($0 / $T(0.5))", &[Same], Rule::Scale(1)),
    ("(-$0)", &[Same], ANY),
    ("abs($0)", &[Same], ANY),
    ("floor($0)", &[Same], Rule::Integer),
    ("ceil($0)", &[Same], Rule::Integer),
    ("round($0)", &[Same], Rule::Integer),
    ("trunc($0)", &[Same], Rule::Integer),
    ("fract($0)", &[Same], Rule::Fraction),
    ("sign($0)", &[Same], Rule::Fixed(0, 0)),
    ("min($0, $1)", &[Same, Same], ANY),
    ("max($0, $1)", &[Same, Same], ANY),
    ("clamp($0, min($1, $2), max($1, $2))", &[Same, NonConstant, Same], ANY),
    ("saturate($0)", &[Same], ANY),
    ("fma($0, $1, $2)", &[Same, Same, Same], Rule::Fma),
    ("mix($0, $1, $2)", &[Same, Same, Same], Rule::Mix),
    ("step($0, $1)", &[Same, Same], Rule::Fixed(0, 0)),
    ("select($0, $1, $2)", &[Same, Same, Bools], ANY),
    ("$T($0 % 5i)", &[Signed], Rule::Fixed(3, 0)),
    ("$T($0 % 7u)", &[Unsigned], Rule::Fixed(3, 0)),
    ("$T($0)", &[Bools], Rule::Fixed(0, 0)),
];

/// Forms of f32, scalars and vectors.
const SINGLES: &[Form] = &[
    ("($0 % 4.0)", &[Same], Rule::Largest),
    ("modf($0).fract", &[Same], Rule::Fraction),
    ("modf($0).whole", &[Same], Rule::Integer),
    ("frexp($0).fract", &[Same], Rule::Significand),
    ("quantizeToF16($0)", &[Same], Rule::PlusOneF16),
];

/// Forms of a scalar float alone.
const FLOAT: &[Form] =
    &[("dot($0, $1)", &[Wide, Wide], Rule::Products(4)), ("($0 / 8.0)", &[Same], Rule::Scale(-3))];

/// Forms of a scalar f32 alone.
const F32: &[Form] = &[
    ("ldexp($0, 3i)", &[Same], Rule::Scale(3)),
    ("ldexp($0, i32(-2))", &[Same], Rule::Scale(-2)),
    ("determinant(mat2x2<f32>(sign($0) * 8.0, sign($1) * 3.0))", &[Floats(2); 2], DETERMINANT),
    ("determinant(mat3x3<f32>(sign($0), sign($1) * 2.0, sign($2)))", &[Floats(3); 3], DETERMINANT),
    (
        "determinant(mat4x4<f32>(sign($0), sign($1), sign($2), sign($3)))",
        &[Floats(4); 4],
        DETERMINANT,
    ),
    ("bitcast<f32>(($0 & 0x7ffffeu) | 0x3f800000u)", &[Uints(1)], Rule::Fixed(1, 22)),
];

/// Forms of vec2<f32> alone.
///
/// Mesa 22 unpacks constants wrongly: see corpus/drivers/unpack_constant_f16.wgsl. Adding a word of
/// a buffer avoids a constant.
const F32X2: &[Form] = &[(
    "unpack2x16float((($0 + 3u * words[2]) & 0x03ff03ffu) | 0x3c003c00u)",
    &[Uints(1)],
    Rule::Fixed(1, 10),
)];

/// Forms of vectors of three floats alone.
const FLOATX3: &[Form] = &[("cross($0, $1)", &[Same, Same], Rule::Products(2))];

/// Returns the tables of forms for a scalar or vector type.
pub(crate) fn tables(ty: &Type) -> Vec<&'static [Form]> {
    let width = ty.width();
    let scalar = ty.scalar().unwrap_or(Scalar::U32);
    let mut tables: Vec<&[Form]> = match scalar {
        Scalar::Bool => vec![BOOLS],
        Scalar::I32 => vec![INTEGERS, WORDS, SIGNED, I32S],
        Scalar::U32 => vec![INTEGERS, WORDS, U32S],
        Scalar::I16 | Scalar::I64 => vec![INTEGERS, SIGNED, OTHERS],
        Scalar::U16 | Scalar::U64 => vec![INTEGERS, OTHERS],
        Scalar::F32 => vec![FLOATS, SINGLES],
        Scalar::F16 | Scalar::F64 => vec![FLOATS],
    };
    match (scalar, width) {
        (Scalar::Bool, 1) => tables.push(BOOL),
        (Scalar::I32, 1) => tables.push(I32),
        (Scalar::U32, 1) => tables.push(U32),
        (Scalar::I32, 4) => tables.push(I32X4),
        (Scalar::U32, 4) => tables.push(U32X4),
        (Scalar::F32, 1) => tables.extend([FLOAT, F32]),
        (Scalar::F32, 2) => tables.push(F32X2),
        (Scalar::F16 | Scalar::F64, 1) => tables.push(FLOAT),
        _ => {}
    }
    if scalar.is_float() && width == 3 {
        tables.push(FLOATX3);
    }
    tables
}
