//! Functions of two operands, which are broadcast.

use std::sync::Arc;

use arrayvec::ArrayVec;
use scry_gpu::kir::BinaryOp;

use super::unary::{output, types};
use super::{Apply, KernelSource, Operand, Operation, Value, math};
use crate::dtype::{BOOL, DType, ELEMENTS, FLOATS, INTEGERS, NUMBERS};
use crate::eager::{self, EagerKey};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::{Expression, Id};
use crate::op::Op;
use crate::scalar::Scalar;
use crate::stored::Stored;
use crate::tensor::{Tensor, apply};

/// The rule and the meaning of a binary operation.
pub(crate) struct Binary {
    types: &'static [DType],
    /// The element type of the result, if it is not that of the operands.
    output: Option<DType>,
    meaning: fn(&mut Expression, Id, Id) -> Id,
}

impl Binary {
    /// Computes the operation, with the operands broadcast to one shape.
    pub(crate) fn apply(&self, call: Call, a: &Operand, b: &Operand) -> Result<Tensor> {
        if let Some(result) = self.eager(call, a, b)? {
            return Ok(result.into());
        }
        let tensors: Vec<&Tensor> = [a, b].iter().filter_map(|it| it.tensor()).collect();
        let described = self.describe(call, a, b);
        apply(call, Tensor::scoped(&tensors, described)?, &tensors)
    }

    /// Computes the operation at once, if it has a short path.
    fn eager(&self, call: Call, a: &Operand, b: &Operand) -> Result<Option<Stored>> {
        let mut stored: ArrayVec<&Arc<Stored>, 2> = ArrayVec::new();
        for tensor in [a, b].iter().filter_map(|it| it.tensor()) {
            if tensor.node().is_some() {
                return Ok(None);
            }
            stored.push(tensor.stored(call)?);
        }
        let dtype = common_dtype(call, &[a, b])?;
        call.check_dtype(dtype, self.types)?;
        let mut arguments: ArrayVec<u32, 2> = ArrayVec::new();
        for operand in [a, b] {
            if let Operand::Scalar(scalar) = operand {
                arguments.push(scalar.bits(call, dtype)?);
            }
        }
        let is_number = [a, b].map(|it| matches!(it, Operand::Scalar(_)));
        let (function, output) = (self.meaning as usize, self.output.unwrap_or(dtype));
        let key = EagerKey { function, dtype, output, is_number };
        let map = || {
            let mut e = Expression::default();
            let [first, second] = is_number.map(|is_number| match is_number {
                true => e.argument(dtype),
                false => e.operand(dtype),
            });
            let result = (self.meaning)(&mut e, first, second);
            e.finish(result, output)
        };
        eager::run(call, key, &stored, &arguments, map)
    }

    fn describe(&self, call: Call, a: &Operand, b: &Operand) -> Result<Op> {
        let dtype = common_dtype(call, &[a, b])?;
        call.check_dtype(dtype, self.types)?;
        let mut operands = Operands::default();
        let first = operands.add(call, dtype, a)?;
        let second = operands.add(call, dtype, b)?;
        let Operands { mut e, arguments } = operands;
        let result = (self.meaning)(&mut e, first, second);
        Ok(Op::map(e.finish(result, self.output.unwrap_or(dtype)), arguments))
    }
}

/// Operands of a map: tensors are loaded, scalars are arguments.
#[derive(Default)]
pub(super) struct Operands {
    pub(super) e: Expression,
    pub(super) arguments: Vec<u32>,
}

impl Operands {
    /// Adds an operand of elements of type `dtype`.
    pub(super) fn add(&mut self, call: Call, dtype: DType, operand: &Operand) -> Result<Id> {
        Ok(match operand {
            Operand::Tensor(_) => self.e.operand(dtype),
            Operand::Scalar(scalar) => {
                self.arguments.push(scalar.bits(call, dtype)?);
                self.e.argument(dtype)
            }
        })
    }
}

/// Returns the element type that all tensors have.
pub(super) fn common_dtype(call: Call, operands: &[&Operand]) -> Result<DType> {
    let mut tensors = operands.iter().filter_map(|operand| operand.tensor());
    let Some(first) = tensors.next() else {
        let scalar = |it: &&Operand| matches!(it, Operand::Scalar(Scalar::Float(_)));
        return Ok(if operands.iter().any(scalar) { DType::F32 } else { DType::I32 });
    };
    match tensors.find(|tensor| tensor.dtype() != first.dtype()) {
        None => Ok(first.dtype()),
        Some(other) => {
            let (a, b) = (first.dtype(), other.dtype());
            // Floats keep their type; quantised weights become that of the other tensor.
            let target = match (a.is_quantized(), b.is_quantized()) {
                (true, true) => DType::F32,
                (true, false) => b,
                (false, true) => a,
                (false, false) => {
                    if a.is_float() || !b.is_float() {
                        a
                    } else {
                        b
                    }
                }
            };
            Err(call.error(
                ErrorKind::DType,
                format!("the element types differ: {a} and {b}"),
                format!("convert one of the tensors: `.cast(DType::{target:?})`"),
            ))
        }
    }
}

macro_rules! binary {
    ($(
        $(#[doc = $doc:literal])*
        $method:ident, $row:ident: $types:ident $(-> $output:ident)?, within $tolerance:literal;
        |$e:ident, $a:ident, $b:ident| $meaning:expr;
        $(float |$fa:ident, $fb:ident| $float:expr;)?
        $(integer |$ia:ident, $ib:ident| $integer:expr;)?
        $(bool |$ba:ident, $bb:ident| $bool:expr;)?
        example $input:literal, $other:literal => $result:literal;
    )*) => {
        impl Binary {
            $(pub(crate) const $row: Self = Self {
                types: $types,
                output: output!($($output)?),
                meaning: |$e, $a, $b| $meaning,
            };)*
        }

        /// Functions of two operands. Shapes are broadcast; element types must be equal, and
        /// scalars adopt that of the tensor.
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
                    "assert_eq!(x.", stringify!($method), "(", $other, ")?.to_string(), \"",
                    $result, "\");"
                )]
                /// # Ok::<(), Box<dyn std::error::Error>>(())
                /// ```
                ///
                /// # Errors
                /// [`ErrorKind::Shape`] if the shapes do not broadcast; [`ErrorKind::DType`] if
                /// the element types differ, or are other types than
                #[doc = concat!(types!($types), ";")]
                /// [`ErrorKind::Value`] for a scalar out of range; [`ErrorKind::Device`] for
                /// tensors of different devices; [`ErrorKind::Gpu`].
                #[track_caller]
                pub fn $method(&self, other: impl Into<Operand>) -> Result<Self> {
                    let call = Call::new(concat!("Tensor::", stringify!($method)));
                    Binary::$row.apply(call, &self.into(), &other.into())
                }
            )*
        }

        pub(super) const OPERATIONS: &[Operation] = &[$(Operation {
            name: stringify!($method),
            summary: concat!($($doc),*),
            kernel: KernelSource::Generated,
            types: $types,
            tolerance: $tolerance,
            apply: Apply::Binary(|a, b| a.$method(b), |a, b| {
                $(if let (Value::Float($fa), Value::Float($fb)) = (a, b) {
                    return Some(Value::from($float));
                })?
                $(if let (Value::Integer($ia), Value::Integer($ib)) = (a, b) {
                    return Some(Value::from($integer));
                })?
                $(if let (Value::Bool($ba), Value::Bool($bb)) = (a, b) {
                    return Some(Value::from($bool));
                })?
                None
            }),
        }),*];
    };
}

binary! {
    /// Returns the sum. Integers wrap.
    add, ADD: NUMBERS, within 1e-7;
    |e, a, b| e.binary(BinaryOp::Add, a, b);
    float |a, b| a + b;
    integer |a, b| a + b;
    example "[1, 2]", "10" => "[11 12]";

    /// Returns the difference. Integers wrap.
    sub, SUB: NUMBERS, within 1e-7;
    |e, a, b| e.binary(BinaryOp::Sub, a, b);
    float |a, b| a - b;
    integer |a, b| a - b;
    example "[1, 2]", "10" => "[-9 -8]";

    /// Returns the product. Integers wrap.
    mul, MUL: NUMBERS, within 1e-7;
    |e, a, b| e.binary(BinaryOp::Mul, a, b);
    float |a, b| a * b;
    integer |a, b| a.wrapping_mul(b);
    example "[1, 2]", "10" => "[10 20]";

    /// Returns the quotient of floats. Integers have [`floor_divide`](Tensor::floor_divide).
    div, DIV: FLOATS, within 1e-6;
    |e, a, b| e.binary(BinaryOp::Div, a, b);
    float |a, b| a / b;
    example "[1.0f32, 2.0]", "4.0" => "[0.25 0.5 ]";

    /// Returns the quotient of integers, rounded down; 0 if the divisor is 0, as in NumPy.
    floor_divide, FLOOR_DIVIDE: INTEGERS, within 0.0;
    |e, a, b| math::floor_divide(e, a, b);
    integer |a, b| if b == 0 { 0 } else { (a as f64 / b as f64).floor() as i64 };
    example "[7, -7]", "2" => "[ 3 -4]";

    /// Returns the remainder of integers with the sign of the divisor; 0 if the divisor is 0, as
    /// in NumPy.
    remainder, REMAINDER: INTEGERS, within 0.0;
    |e, a, b| math::remainder(e, a, b);
    integer |a, b| if b == 0 { 0 } else { a - b * (a as f64 / b as f64).floor() as i64 };
    example "[7, -7]", "3" => "[1 2]";

    /// Returns each element to a power, as IEEE 754 defines it: of a negative number, a number if
    /// the power is an integer, else NaN.
    pow, POW: FLOATS, within 5e-5;
    |e, a, b| math::pow(e, a, b);
    float |a, b| a.powf(b);
    example "[1.0f32, -1.0]", "3.0" => "[ 1. -1.]";

    /// Returns the smaller number; NaN if one is NaN.
    minimum, MINIMUM: NUMBERS, within 0.0;
    |e, a, b| math::extremum(e, BinaryOp::Min, a, b);
    float |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) };
    integer |a, b| a.min(b);
    example "[1, 5]", "3" => "[1 3]";

    /// Returns the larger number; NaN if one is NaN.
    maximum, MAXIMUM: NUMBERS, within 0.0;
    |e, a, b| math::extremum(e, BinaryOp::Max, a, b);
    float |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) };
    integer |a, b| a.max(b);
    example "[1, 5]", "3" => "[3 5]";

    /// Returns whether the elements are equal, as `bool`. NaN equals nothing.
    eq, EQ: ELEMENTS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Eq, a, b);
    float |a, b| a == b;
    integer |a, b| a == b;
    bool |a, b| a == b;
    example "[1, 5]", "5" => "[False  True]";

    /// Returns whether the elements differ, as `bool`. NaN differs from everything.
    ne, NE: ELEMENTS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Ne, a, b);
    float |a, b| a != b;
    integer |a, b| a != b;
    bool |a, b| a != b;
    example "[1, 5]", "5" => "[ True False]";

    /// Returns whether each element is less than the other, as `bool`.
    lt, LT: NUMBERS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Lt, a, b);
    float |a, b| a < b;
    integer |a, b| a < b;
    example "[1, 5]", "5" => "[ True False]";

    /// Returns whether each element is less than the other or equal, as `bool`.
    le, LE: NUMBERS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Le, a, b);
    float |a, b| a <= b;
    integer |a, b| a <= b;
    example "[5, 6]", "5" => "[ True False]";

    /// Returns whether each element is greater than the other, as `bool`.
    gt, GT: NUMBERS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Gt, a, b);
    float |a, b| a > b;
    integer |a, b| a > b;
    example "[5, 6]", "5" => "[False  True]";

    /// Returns whether each element is greater than the other or equal, as `bool`.
    ge, GE: NUMBERS -> Bool, within 0.0;
    |e, a, b| e.binary(BinaryOp::Ge, a, b);
    float |a, b| a >= b;
    integer |a, b| a >= b;
    example "[4, 5]", "5" => "[False  True]";

    /// Returns whether both bools are true.
    logical_and, LOGICAL_AND: BOOL, within 0.0;
    |e, a, b| e.binary(BinaryOp::And, a, b);
    bool |a, b| a && b;
    example "[true, false]", "true" => "[ True False]";

    /// Returns whether a bool is true.
    logical_or, LOGICAL_OR: BOOL, within 0.0;
    |e, a, b| e.binary(BinaryOp::Or, a, b);
    bool |a, b| a || b;
    example "[true, false]", "false" => "[ True False]";

    /// Returns whether exactly one bool is true.
    logical_xor, LOGICAL_XOR: BOOL, within 0.0;
    |e, a, b| e.binary(BinaryOp::Xor, a, b);
    bool |a, b| a ^ b;
    example "[true, false]", "true" => "[False  True]";
}
