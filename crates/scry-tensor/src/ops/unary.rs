//! Functions of each element.

use scry_gpu::kir::{BinaryOp, UnaryOp};

use super::{Apply, KernelSource, Operation, Value, math};
use crate::dtype::{BOOL, DType, FLOATS, NUMBERS, SIGNED};
use crate::eager::{self, EagerKey};
use crate::error::{Call, Result};
use crate::expr::{Expression, Id};
use crate::op::Op;
use crate::tensor::{Tensor, apply};

/// The rule and the meaning of a unary operation.
pub(crate) struct Unary {
    types: &'static [DType],
    /// The element type of the result, if it is not that of the operand.
    output: Option<DType>,
    meaning: fn(&mut Expression, Id) -> Id,
}

impl Unary {
    /// Computes the operation. The result has the operand's shape.
    pub(crate) fn apply(&self, call: Call, x: &Tensor) -> Result<Tensor> {
        Tensor::scoped(&[x], call.check_dtype(x.dtype(), self.types))?;
        let output = self.output.unwrap_or(x.dtype());
        let map = || {
            let mut e = Expression::default();
            let operand = e.operand(x.dtype());
            let result = (self.meaning)(&mut e, operand);
            e.finish(result, output)
        };
        if x.node().is_none() {
            let (function, dtype) = (self.meaning as usize, x.dtype());
            let key = EagerKey { function, dtype, output, is_number: [false; 2] };
            if let Some(stored) = eager::run(call, key, &[x.stored(call)?], &[], map)? {
                return Ok(stored.into());
            }
        }
        apply(call, Op::map(map(), Vec::new()), &[x])
    }
}

macro_rules! unary {
    ($(
        $(#[doc = $doc:literal])*
        $method:ident, $row:ident: $types:ident $(-> $output:ident)?, within $tolerance:literal;
        |$e:ident, $x:ident| $meaning:expr;
        $(float |$f:ident| $float:expr;)?
        $(integer |$i:ident| $integer:expr;)?
        $(bool |$b:ident| $bool:expr;)?
        example $input:literal => $result:literal;
    )*) => {
        impl Unary {
            $(pub(crate) const $row: Self = Self {
                types: $types,
                output: output!($($output)?),
                meaning: |$e, $x| $meaning,
            };)*
        }

        /// Functions of each element. The result has the shape of the tensor.
        impl Tensor {
            $(
                $(#[doc = $doc])*
                ///
                /// ```
                /// use scry_tensor::{Device, Tensor};
                ///
                /// let gpu = Device::open("cpu")?;
                #[doc = concat!("let x = Tensor::new(", $input, ", &gpu)?;")]
                #[doc = concat!(
                    "assert_eq!(x.", stringify!($method), "()?.to_string(), \"", $result, "\");"
                )]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                /// [`ErrorKind::DType`](crate::ErrorKind::DType) for other element types than
                #[doc = concat!(types!($types), ";")]
                /// [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
                #[track_caller]
                pub fn $method(&self) -> Result<Self> {
                    let call = Call::new(concat!("Tensor::", stringify!($method)));
                    Unary::$row.apply(call, self)
                }
            )*
        }

        pub(super) const OPERATIONS: &[Operation] = &[$(Operation {
            name: stringify!($method),
            summary: concat!($($doc),*),
            kernel: KernelSource::Generated,
            types: $types,
            tolerance: $tolerance,
            apply: Apply::Unary(Tensor::$method, |x| {
                $(if let Value::Float($f) = x {
                    return Some(Value::from($float));
                })?
                $(if let Value::Integer($i) = x {
                    return Some(Value::from($integer));
                })?
                $(if let Value::Bool($b) = x {
                    return Some(Value::from($bool));
                })?
                None
            }),
        }),*];
    };
}

/// Returns the element type of a row's result.
macro_rules! output {
    () => {
        None
    };
    ($output:ident) => {
        Some(DType::$output)
    };
}

/// Returns a list of element types for the documentation.
macro_rules! types {
    (FLOATS) => {
        "floats"
    };
    (SIGNED) => {
        "floats and `i32`"
    };
    (NUMBERS) => {
        "floats, `i32` and `u32`"
    };
    (INTEGERS) => {
        "`i32` and `u32`"
    };
    (BOOL) => {
        "`bool`"
    };
    (ELEMENTS) => {
        "floats, `i32`, `u32` and `bool`"
    };
}

pub(super) use {output, types};

unary! {
    /// Returns the negation of each element. The minimum integer is unchanged.
    neg, NEG: SIGNED, within 0.0;
    |e, x| e.unary(UnaryOp::Neg, x);
    float |x| -x;
    integer |x| -x;
    example "[1, -2]" => "[-1  2]";

    /// Returns the absolute value of each element. The minimum integer is unchanged.
    abs, ABS: SIGNED, within 0.0;
    |e, x| e.unary(UnaryOp::Abs, x);
    float |x| x.abs();
    integer |x| x.abs();
    example "[1, -2]" => "[1 2]";

    /// Returns the sign of each element: -1, 0 or 1; of NaN, NaN.
    sign, SIGN: SIGNED, within 0.0;
    |e, x| math::sign(e, x);
    float |x| if x == 0.0 || x.is_nan() { x } else { x.signum() };
    integer |x| x.signum();
    example "[5, 0, -2]" => "[ 1  0 -1]";

    /// Returns the square of each element. Integers wrap.
    square, SQUARE: NUMBERS, within 1e-6;
    |e, x| e.binary(BinaryOp::Mul, x, x);
    float |x| x * x;
    integer |x| x.wrapping_mul(x);
    example "[3, -2]" => "[9 4]";

    /// Returns 1 divided by each element.
    reciprocal, RECIPROCAL: FLOATS, within 1e-6;
    |e, x| {
        let one = e.f32(1.0);
        e.binary(BinaryOp::Div, one, x)
    };
    float |x| 1.0 / x;
    example "[4.0f32]" => "[0.25]";

    /// Returns the square root of each element; of negative numbers, NaN.
    sqrt, SQRT: FLOATS, within 1e-6;
    |e, x| e.unary(UnaryOp::Sqrt, x);
    float |x| x.sqrt();
    example "[0.0f32, 9.0]" => "[0. 3.]";

    /// Returns 1 divided by the square root of each element.
    rsqrt, RSQRT: FLOATS, within 1e-6;
    |e, x| {
        let root = e.unary(UnaryOp::Sqrt, x);
        let one = e.f32(1.0);
        e.binary(BinaryOp::Div, one, root)
    };
    float |x| 1.0 / x.sqrt();
    example "[4.0f32]" => "[0.5]";

    /// Returns e to the power of each element.
    exp, EXP: FLOATS, within 1e-5;
    |e, x| e.unary(UnaryOp::Exp, x);
    float |x| x.exp();
    example "[0.0f32]" => "[1.]";

    /// Returns 2 to the power of each element.
    exp2, EXP2: FLOATS, within 1e-5;
    |e, x| e.unary(UnaryOp::Exp2, x);
    float |x| x.exp2();
    example "[0.0f32, 3.0]" => "[1. 8.]";

    /// Returns the natural logarithm of each element; of negative numbers, NaN.
    log, LOG: FLOATS, within 1e-6;
    |e, x| e.unary(UnaryOp::Log, x);
    float |x| x.ln();
    example "[1.0f32]" => "[0.]";

    /// Returns the logarithm to base 2 of each element; of negative numbers, NaN.
    log2, LOG2: FLOATS, within 1e-6;
    |e, x| e.unary(UnaryOp::Log2, x);
    float |x| x.log2();
    example "[1.0f32, 8.0]" => "[0. 3.]";

    /// Returns the sine of each element, in radians. The error grows with its magnitude: through
    /// Vulkan by up to 2⁻²⁴ of it.
    sin, SIN: FLOATS, within 1e-5;
    |e, x| e.unary(UnaryOp::Sin, x);
    float |x| x.sin();
    example "[0.0f32]" => "[0.]";

    /// Returns the cosine of each element, in radians. The error grows with its magnitude: through
    /// Vulkan by up to 2⁻²⁴ of it.
    cos, COS: FLOATS, within 1e-5;
    |e, x| e.unary(UnaryOp::Cos, x);
    float |x| x.cos();
    example "[0.0f32]" => "[1.]";

    /// Returns the hyperbolic tangent of each element.
    tanh, TANH: FLOATS, within 1e-5;
    |e, x| e.unary(UnaryOp::Tanh, x);
    float |x| x.tanh();
    example "[0.0f32]" => "[0.]";

    /// Returns the error function of each element, with an absolute error of about 5e-7.
    erf, ERF: FLOATS, within 1e-6;
    |e, x| math::erf(e, x);
    float |x| math::erf_reference(x);
    example "[20.0f32, -20.0]" => "[ 1. -1.]";

    /// Returns the logistic function of each element: `1 / (1 + e^-x)`.
    sigmoid, SIGMOID: FLOATS, within 1e-5;
    |e, x| math::sigmoid(e, x);
    float |x| 1.0 / (1.0 + (-x).exp());
    example "[0.0f32]" => "[0.5]";

    /// Returns each element if it is positive, else 0; of NaN, NaN.
    relu, RELU: NUMBERS, within 0.0;
    |e, x| math::relu(e, x);
    float |x| if x < 0.0 { 0.0 } else { x };
    integer |x| x.max(0);
    example "[1.5f32, -2.0]" => "[1.5 0. ]";

    /// Returns the Gaussian error linear unit of each element: `x * (1 + erf(x / √2)) / 2`.
    gelu, GELU: FLOATS, within 2e-6;
    |e, x| math::gelu(e, x);
    float |x| 0.5 * x * (1.0 + math::erf_reference(x * std::f64::consts::FRAC_1_SQRT_2));
    example "[0.0f32, 20.0]" => "[ 0. 20.]";

    /// Returns the usual approximation of the Gaussian error linear unit of each element:
    /// `x * (1 + tanh(√(2 / π) * (x + 0.044715 x³))) / 2`.
    gelu_tanh, GELU_TANH: FLOATS, within 1e-5;
    |e, x| math::gelu_tanh(e, x);
    float |x| {
        let inner = x + 0.044_715 * x.powi(3);
        0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * inner).tanh())
    };
    example "[0.0f32, 20.0]" => "[ 0. 20.]";

    /// Returns the softplus of each element: `ln(1 + e^x)`.
    softplus, SOFTPLUS: FLOATS, within 1e-5;
    |e, x| math::softplus(e, x);
    float |x| if x.is_nan() { x } else { x.max(0.0) + (-x.abs()).exp().ln_1p() };
    example "[-200.0f32, 200.0]" => "[  0. 200.]";

    /// Returns the sigmoid linear unit of each element, also called swish: `x / (1 + e^-x)`.
    silu, SILU: FLOATS, within 1e-5;
    |e, x| math::silu(e, x);
    float |x| x * (1.0 / (1.0 + (-x).exp()));
    example "[0.0f32]" => "[0.]";

    /// Returns each element rounded down to an integer.
    floor, FLOOR: FLOATS, within 0.0;
    |e, x| e.unary(UnaryOp::Floor, x);
    float |x| x.floor();
    example "[1.5f32, -1.5]" => "[ 1. -2.]";

    /// Returns each element rounded up to an integer.
    ceil, CEIL: FLOATS, within 0.0;
    |e, x| e.unary(UnaryOp::Ceil, x);
    float |x| x.ceil();
    example "[1.5f32, -1.5]" => "[ 2. -1.]";

    /// Returns each element rounded to the nearest integer, ties to even.
    round, ROUND: FLOATS, within 0.0;
    |e, x| e.unary(UnaryOp::Round, x);
    float |x| x.round_ties_even();
    example "[1.5f32, 2.5]" => "[2. 2.]";

    /// Returns each element rounded towards 0 to an integer.
    trunc, TRUNC: FLOATS, within 0.0;
    |e, x| e.unary(UnaryOp::Trunc, x);
    float |x| x.trunc();
    example "[1.5f32, -1.5]" => "[ 1. -1.]";

    /// Returns for each element whether it is NaN.
    isnan, ISNAN: FLOATS -> Bool, within 0.0;
    |e, x| e.unary(UnaryOp::IsNan, x);
    float |x| x.is_nan();
    example "[1.0f32, f32::NAN]" => "[False  True]";

    /// Returns for each element whether it is infinite.
    isinf, ISINF: FLOATS -> Bool, within 0.0;
    |e, x| e.unary(UnaryOp::IsInf, x);
    float |x| x.is_infinite();
    example "[1.0f32, f32::INFINITY]" => "[False  True]";

    /// Returns the negation of each bool.
    logical_not, LOGICAL_NOT: BOOL, within 0.0;
    |e, x| e.unary(UnaryOp::Not, x);
    bool |x| !x;
    example "[true, false]" => "[False  True]";
}
