//! Functions of each element with scalars.

use scry_gpu::kir::BinaryOp;

use super::{Apply, KernelSource, Operation, Value, math};
use crate::dtype::{DType, FLOATS, NUMBERS};
use crate::error::{Call, Result};
use crate::expr::{Expression, Id};
use crate::op::Op;
use crate::scalar::Scalar;
use crate::tensor::{Tensor, apply};

/// Functions of each element with scalars.
impl Tensor {
    /// Returns each element, at least `min` and at most `max`: `max` if `min` is larger; of NaN,
    /// NaN.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([-5, 1, 5], &gpu)?;
    /// assert_eq!(x.clip(-2, 2)?.to_vec::<i32>()?, [-2, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) for `bool` and quantised weights, and if a
    /// scalar does not fit the type; [`ErrorKind::Value`](crate::ErrorKind::Value) for a scalar out
    /// of range; [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[doc(alias = "clamp")]
    #[track_caller]
    pub fn clip(&self, min: impl Into<Scalar>, max: impl Into<Scalar>) -> Result<Self> {
        let (call, scalars) = (Call::new("Tensor::clip"), [min.into(), max.into()]);
        self.with_scalars(call, NUMBERS, scalars, |e, x, [min, max]| {
            let raised = math::extremum(e, BinaryOp::Max, x, min);
            math::extremum(e, BinaryOp::Min, raised, max)
        })
    }

    /// Returns each element if it is positive, else its product with a slope.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([2.0f32, -2.0], &gpu)?;
    /// assert_eq!(x.leaky_relu(0.25)?.to_vec::<f32>()?, [2.0, -0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) for other element types than floats; otherwise
    /// as [`clip`](Self::clip).
    #[track_caller]
    pub fn leaky_relu(&self, slope: impl Into<Scalar>) -> Result<Self> {
        let call = Call::new("Tensor::leaky_relu");
        self.with_scalars(call, FLOATS, [slope.into()], |e, x, [slope]| {
            let scaled = e.binary(BinaryOp::Mul, x, slope);
            let zero = e.zero_like(x);
            let is_positive = e.binary(BinaryOp::Gt, x, zero);
            e.select(is_positive, x, scaled)
        })
    }

    /// Returns the exponential linear unit of each element: itself if it is positive, else
    /// `alpha * (e^x - 1)`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([2.0f32, -200.0], &gpu)?;
    /// assert_eq!(x.elu(0.5)?.to_vec::<f32>()?, [2.0, -0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`leaky_relu`](Self::leaky_relu).
    #[track_caller]
    pub fn elu(&self, alpha: impl Into<Scalar>) -> Result<Self> {
        let call = Call::new("Tensor::elu");
        self.with_scalars(call, FLOATS, [alpha.into()], |e, x, [alpha]| {
            let less = math::exp_m1(e, x);
            let scaled = e.binary(BinaryOp::Mul, alpha, less);
            let zero = e.zero_like(x);
            let is_positive = e.binary(BinaryOp::Gt, x, zero);
            e.select(is_positive, x, scaled)
        })
    }

    /// Computes a function of each element and of scalars in the type of the elements.
    fn with_scalars<const N: usize>(
        &self,
        call: Call,
        types: &[DType],
        scalars: [Scalar; N],
        meaning: impl FnOnce(&mut Expression, Id, [Id; N]) -> Id,
    ) -> Result<Self> {
        let dtype = self.dtype();
        let describe = || {
            call.check_dtype(dtype, types)?;
            let bits = scalars.iter().map(|scalar| scalar.bits(call, dtype));
            let bits = bits.collect::<Result<Vec<u32>>>()?;
            let mut e = Expression::default();
            let x = e.operand(dtype);
            let arguments = scalars.map(|_| e.argument(dtype));
            let result = meaning(&mut e, x, arguments);
            Ok(Op::map(e.finish(result, dtype), bits))
        };
        apply(call, Self::scoped(&[self], describe())?, &[self])
    }
}

/// Returns the table's row of a function of floats, with scalars of a test.
const fn row(
    name: &'static str,
    summary: &'static str,
    tolerance: f64,
    call: fn(&Tensor) -> Result<Tensor>,
    reference: fn(Value) -> Option<Value>,
) -> Operation {
    let (types, kernel, apply) = (FLOATS, KernelSource::Generated, Apply::Unary(call, reference));
    Operation { name, summary, types, tolerance, kernel, apply }
}

/// Returns a function of a float as one of values.
fn float(value: Value, function: fn(f64) -> f64) -> Option<Value> {
    let Value::Float(x) = value else { return None };
    Some(function(x).into())
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        types: NUMBERS,
        ..row(
            "clip",
            "each element between two bounds",
            0.0,
            |x| x.clip(0, 7),
            |value| match value {
                Value::Integer(x) => Some(x.clamp(0, 7).into()),
                _ => float(value, |x| x.clamp(0.0, 7.0)),
            },
        )
    },
    row(
        "leaky_relu",
        "each element if it is positive, else its product with a slope",
        1e-6,
        |x| x.leaky_relu(0.25),
        |value| float(value, |x| if x > 0.0 { x } else { 0.25 * x }),
    ),
    row(
        "elu",
        "exponential linear unit of each element",
        1e-5,
        |x| x.elu(0.5),
        |value| float(value, |x| if x > 0.0 { x } else { 0.5 * (x.exp() - 1.0) }),
    ),
];
