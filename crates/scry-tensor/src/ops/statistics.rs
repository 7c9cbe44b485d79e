//! Reductions with options, argmin and argmax.

use scry_kernels::Reduction;

use super::reduce::Rule;
use super::reference::{Array, Case, Draw};
use super::{Apply, KernelSource, Operation, Unary};
use crate::dtype::{DType, FLOATS, NUMBERS};
use crate::error::{Call, ErrorKind, Result};
use crate::scalar::Scalar;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// Variances, norms, argmin and argmax.
impl Tensor {
    /// Returns the variance over axes: the sum of squared distances from the mean, divided by the
    /// number of elements minus `correction`: 0 for NumPy's default, 1 for PyTorch's. NaN if there
    /// are no more elements than that.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 3.0], [2.0, 2.0]], &gpu)?;
    /// assert_eq!(x.var(-1, 0)?.to_vec::<f32>()?, [1.0, 0.0]);
    /// assert_eq!(x.var(-1, 1)?.to_vec::<f32>()?, [2.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if an axis is out of range or given twice; [`ErrorKind::DType`] for
    /// other element types than floats; [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn var(&self, axes: impl Into<Axes>, correction: u32) -> Result<Self> {
        let call = Call::new("Tensor::var");
        variance(correction).apply(call, self, &axes.into(), false)
    }

    /// Returns the standard deviation over axes: the square root of the [variance](Self::var),
    /// which is `f32` for 16-bit floats, and so does not overflow if the result does not.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([1.0f32, 5.0], &gpu)?;
    /// assert_eq!(x.std(0, 0)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`var`](Self::var).
    #[track_caller]
    pub fn std(&self, axes: impl Into<Axes>, correction: u32) -> Result<Self> {
        let call = Call::new("Tensor::std");
        call.check_dtype(self.dtype(), FLOATS)?;
        let x = self.accumulated(call)?;
        let variance = variance(correction).apply(call, &x, &axes.into(), false)?;
        Unary::SQRT.apply(call, &variance)?.narrowed(call, self.dtype())
    }

    /// Returns the Euclidean norm over axes: the square root of the sum of squares, which neither
    /// overflows nor underflows if the result does not. The norm of no elements is 0.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[3.0f32, 4.0], [1e30, 0.0]], &gpu)?;
    /// assert_eq!(x.norm(-1)?.to_vec::<f32>()?, [5.0, 1e30]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`var`](Self::var).
    #[track_caller]
    pub fn norm(&self, axes: impl Into<Axes>) -> Result<Self> {
        let (reduction, of_nothing) = (Reduction::Norm, Some(Scalar::Int(0)));
        let rule = Rule { types: FLOATS, reduction, of_nothing };
        rule.apply(Call::new("Tensor::norm"), self, &axes.into(), false)
    }

    /// Returns the index of the largest element along an axis, or of all elements in row-major
    /// order (`..`), as `u32`: of equal elements the first; of the first NaN, if there is one.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 7, 7], [5, 0, -1]], &gpu)?;
    /// assert_eq!(x.argmax(-1)?.to_vec::<u32>()?, [1, 0]);
    /// assert_eq!(x.argmax(..)?.item::<u32>()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the axis is out of range, or several are given;
    /// [`ErrorKind::DType`] for `bool` and quantised weights; [`ErrorKind::Shape`] if there are no
    /// elements and therefore no result; [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn argmax(&self, axis: impl Into<Axes>) -> Result<Self> {
        self.position(Call::new("Tensor::argmax"), Reduction::ArgMax, &axis.into())
    }

    /// Returns the index of the smallest element along an axis, or of all elements in row-major
    /// order (`..`), as `u32`: of equal elements the first; of the first NaN, if there is one.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 7.0], [5.0, f32::NAN]], &gpu)?;
    /// assert_eq!(x.argmin(0)?.to_vec::<u32>()?, [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`argmax`](Self::argmax).
    #[track_caller]
    pub fn argmin(&self, axis: impl Into<Axes>) -> Result<Self> {
        self.position(Call::new("Tensor::argmin"), Reduction::ArgMin, &axis.into())
    }

    fn position(&self, call: Call, reduction: Reduction, axes: &Axes) -> Result<Self> {
        let chosen = Self::scoped(&[self], axes.resolve(call, self.rank()))?;
        let count = chosen.iter().filter(|axis| **axis).count();
        if count != 1 && count != self.rank() {
            let problem = format!("{count} axes are given");
            let help = "use one axis, or `..` for indices among all elements";
            return Err(call.error(ErrorKind::Index, problem, help));
        }
        let rule = Rule { types: NUMBERS, reduction, of_nothing: None };
        rule.apply(call, self, axes, false)
    }
}

fn variance(correction: u32) -> Rule {
    let (reduction, of_nothing) = (Reduction::Variance { correction }, Scalar::Float(f64::NAN));
    Rule { types: FLOATS, reduction, of_nothing: Some(of_nothing) }
}

/// Returns the table's row of a reduction of lines along one axis.
const fn row(
    name: &'static str,
    summary: &'static str,
    types: &'static [DType],
    apply: fn(&mut Draw, DType) -> Case,
) -> Operation {
    let (tolerance, kernel) = (1e-5, KernelSource::Library("reduce_rows"));
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("sum", "sum over axes", NUMBERS, |draw, dtype| {
        case(draw, dtype, dtype, 0, |line| line.iter().sum(), |x, axis| x.sum(axis))
    }),
    row("prod", "product over axes", NUMBERS, |draw, dtype| {
        case(draw, dtype, dtype, 0, |line| line.iter().product(), |x, axis| x.prod(axis))
    }),
    row("mean", "mean over axes", FLOATS, |draw, dtype| {
        case(draw, dtype, dtype, 0, mean, |x, axis| x.mean(axis))
    }),
    row("max", "largest element over axes", NUMBERS, |draw, dtype| {
        let largest = |line: &[f64]| line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        case(draw, dtype, dtype, 1, largest, |x, axis| x.max(axis))
    }),
    row("min", "smallest element over axes", NUMBERS, |draw, dtype| {
        let smallest = |line: &[f64]| line.iter().copied().fold(f64::INFINITY, f64::min);
        case(draw, dtype, dtype, 1, smallest, |x, axis| x.min(axis))
    }),
    row("argmax", "index of the largest element", NUMBERS, |draw, dtype| {
        let first = |line: &[f64]| first(line, |a, b| a > b);
        case(draw, dtype, DType::U32, 1, first, |x, axis| x.argmax(axis))
    }),
    row("argmin", "index of the smallest element", NUMBERS, |draw, dtype| {
        let first = |line: &[f64]| first(line, |a, b| a < b);
        case(draw, dtype, DType::U32, 1, first, |x, axis| x.argmin(axis))
    }),
    row("var", "variance over axes", FLOATS, |draw, dtype| {
        case(draw, dtype, dtype, 0, |line| spread(line, 1.0), |x, axis| x.var(axis, 1))
    }),
    row("std", "standard deviation over axes", FLOATS, |draw, dtype| {
        case(draw, dtype, dtype, 0, |line| spread(line, 0.0).sqrt(), |x, axis| x.std(axis, 0))
    }),
    row("norm", "Euclidean norm over axes", FLOATS, |draw, dtype| {
        let norm = |line: &[f64]| line.iter().map(|x| x * x).sum::<f64>().sqrt();
        case(draw, dtype, dtype, 0, norm, |x, axis| x.norm(axis))
    }),
];

fn mean(line: &[f64]) -> f64 {
    line.iter().sum::<f64>() / line.len() as f64
}

fn spread(line: &[f64], correction: f64) -> f64 {
    let (mean, count) = (mean(line), line.len() as f64 - correction);
    let sum: f64 = line.iter().map(|x| (x - mean).powi(2)).sum();
    if count > 0.0 { sum / count } else { f64::NAN }
}

fn first(line: &[f64], is_better: fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (n, x) in line.iter().enumerate() {
        if is_better(*x, line[best]) {
            best = n;
        }
    }
    best as f64
}

/// Returns a case of a reduction of lines of at least `least` elements.
fn case(
    draw: &mut Draw,
    dtype: DType,
    output: DType,
    least: usize,
    reference: fn(&[f64]) -> f64,
    call: fn(&Tensor, i64) -> Result<Tensor>,
) -> Case {
    let mut shape = draw.shape(1, 4);
    let axis = draw.below(shape.len());
    shape[axis] = shape[axis].max(least);
    let x = draw.numbers(dtype, &shape);
    let wanted: Array = x.along(axis, output, |line| vec![reference(line)]).without(axis);
    Case::new(vec![x], wanted, move |it| call(&it[0], axis as i64))
}
