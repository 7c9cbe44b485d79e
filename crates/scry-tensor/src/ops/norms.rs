//! Softmax and norms.

use super::reference::{Array, Case, Draw};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, FLOATS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Library, Norm, NormKind, Op, Rows, View};
use crate::shape::resolve_axis;
use crate::tensor::{Tensor, apply};

/// Softmax.
impl Tensor {
    /// Returns the softmax along an axis: `e^x` divided by its sum. Computed in `f32`, without
    /// overflow. A row with NaN or +∞, or of -∞ alone, becomes NaN.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[0.0f32, 0.0], [0.0, 200.0]], &gpu)?;
    /// assert_eq!(x.softmax(-1)?.to_vec::<f32>()?, [0.5, 0.5, 0.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the axis is out of range; [`ErrorKind::DType`] for other element
    /// types than floats; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn softmax(&self, axis: i64) -> Result<Self> {
        self.rows(Call::new("Tensor::softmax"), axis, FLOATS, Rows::Softmax)
    }

    /// Returns the logarithm of the [softmax](Self::softmax) along an axis.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([0.0f32, 200.0], &gpu)?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f32>()?, [-200.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax).
    #[track_caller]
    pub fn log_softmax(&self, axis: i64) -> Result<Self> {
        self.rows(Call::new("Tensor::log_softmax"), axis, FLOATS, Rows::LogSoftmax)
    }

    /// Returns a function of lines along an axis.
    pub(super) fn rows(&self, call: Call, axis: i64, types: &[DType], rows: Rows) -> Result<Self> {
        let checked = call.check_dtype(self.dtype(), types);
        let checked = checked.and_then(|()| resolve_axis(call, axis, self.rank()));
        let axis = Self::scoped(&[self], checked)?;
        let x = self.with_last(call, axis)?;
        let y = apply(call, Op::Library(Library::Rows(rows)), &[&x])?;
        y.with_last_at(call, axis)
    }

    /// Returns a view with an axis as the last one.
    pub(super) fn with_last(&self, call: Call, axis: usize) -> Result<Self> {
        self.moved(call, axis, self.rank() - 1)
    }

    /// Returns a view with the last axis at another position: the inverse of `with_last`.
    pub(super) fn with_last_at(&self, call: Call, axis: usize) -> Result<Self> {
        self.moved(call, self.rank() - 1, axis)
    }

    /// Returns a view with an axis at another position.
    pub(super) fn moved(&self, call: Call, from: usize, to: usize) -> Result<Self> {
        if from == to {
            return Ok(self.clone());
        }
        let mut axes: Vec<usize> = (0..self.rank()).collect();
        let axis = axes.remove(from);
        axes.insert(to, axis);
        self.view(call, View::Permute(axes))
    }
}

/// Norms.
impl Tensor {
    /// Returns layer norm along the last axis:
    /// `(x - mean) / sqrt(variance + epsilon) * weight + bias`, computed in `f32`. Weights and
    /// biases are vectors of the size of the axis.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 3.0], [5.0, 5.0]], &gpu)?;
    /// assert_eq!(x.layer_norm(None, None, 0.0625)?.i((1, 0))?.item::<f32>()?, 0.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a tensor of rank 0, and weights or biases of another shape;
    /// [`ErrorKind::DType`] if the types differ or are not floats; [`ErrorKind::Device`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn layer_norm(
        &self,
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f32,
    ) -> Result<Self> {
        let call = Call::new("Tensor::layer_norm");
        match (weight, bias) {
            (None, Some(bias)) => {
                let scaled = self.normalised(call, NormKind::Layer, &[], epsilon)?;
                scaled.check_same_type(call, bias)?;
                let bias = &scaled.checked_vector(call, bias, "bias")?;
                super::Binary::ADD.apply(call, &scaled.into(), &bias.into())
            }
            _ => {
                let others: Vec<&Self> = weight.into_iter().chain(bias).collect();
                self.normalised(call, NormKind::Layer, &others, epsilon)
            }
        }
    }

    /// Returns RMS norm along the last axis: `x / sqrt(mean of x² + epsilon) * weight`, computed in
    /// `f32`. Weights are a vector of the size of the axis.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([3.0f32, -3.0], &gpu)?;
    /// assert_eq!(x.rms_norm(None, 0.0)?.to_vec::<f32>()?, [1.0, -1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`layer_norm`](Self::layer_norm).
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Self>, epsilon: f32) -> Result<Self> {
        let others: Vec<&Self> = weight.into_iter().collect();
        self.normalised(Call::new("Tensor::rms_norm"), NormKind::Rms, &others, epsilon)
    }

    /// Returns group norm: axis 1, the channels, is split into groups of equal size, and each
    /// group, with all axes after it, is scaled to mean 0 and variance 1. Weights and biases are
    /// vectors with an element for each channel.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 3.0, 10.0, 20.0]], &gpu)?;
    /// assert_eq!(x.group_norm(2, None, None, 0.0)?.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the groups do not divide the channels; otherwise as
    /// [`layer_norm`](Self::layer_norm).
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f32,
    ) -> Result<Self> {
        let call = Call::new("Tensor::group_norm");
        let normalised = self.normalised(call, NormKind::Group(groups), &[], epsilon)?;
        let mut y = normalised.accumulated(call)?;
        if let Some(weight) = weight {
            let weight = self.per_channel(call, weight)?;
            y = super::Binary::MUL.apply(call, &y.into(), &weight.into())?;
        }
        if let Some(bias) = bias {
            let bias = self.per_channel(call, bias)?;
            y = super::Binary::ADD.apply(call, &y.into(), &bias.into())?;
        }
        match (weight, bias) {
            (None, None) => Ok(normalised),
            _ => y.narrowed(call, self.dtype()),
        }
    }

    /// Returns batch norm with known statistics of each channel, axis 1:
    /// `(x - mean) / sqrt(variance + epsilon) * weight + bias`. All but `x` are vectors with an
    /// element for each channel. Statistics of a batch are those of [`mean`](Self::mean) and
    /// [`var`](Self::var).
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1.0f32, 10.0], [3.0, 30.0]], &gpu)?;
    /// let (mean, variance) = (x.mean(0)?, x.var(0, 0)?);
    /// let y = x.batch_norm(&mean, &variance, None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`group_norm`](Self::group_norm).
    #[track_caller]
    pub fn batch_norm(
        &self,
        mean: &Self,
        variance: &Self,
        weight: Option<&Self>,
        bias: Option<&Self>,
        epsilon: f32,
    ) -> Result<Self> {
        use super::{Binary, Unary};
        let call = Call::new("Tensor::batch_norm");
        call.check_dtype(self.dtype(), FLOATS)?;
        let mean = self.per_channel(call, mean)?;
        let variance = self.per_channel(call, variance)?;
        let raised = Binary::ADD.apply(call, &variance.into(), &epsilon.into())?;
        let scale = Unary::RSQRT.apply(call, &raised)?;
        let centred = Binary::SUB.apply(call, &self.accumulated(call)?.into(), &mean.into())?;
        let mut y = Binary::MUL.apply(call, &centred.into(), &scale.into())?;
        if let Some(weight) = weight {
            let weight = self.per_channel(call, weight)?;
            y = Binary::MUL.apply(call, &y.into(), &weight.into())?;
        }
        if let Some(bias) = bias {
            let bias = self.per_channel(call, bias)?;
            y = Binary::ADD.apply(call, &y.into(), &bias.into())?;
        }
        y.narrowed(call, self.dtype())
    }

    fn normalised(
        &self,
        call: Call,
        kind: NormKind,
        others: &[&Self],
        epsilon: f32,
    ) -> Result<Self> {
        call.check_dtype(self.dtype(), FLOATS)?;
        others.iter().try_for_each(|other| self.check_same_type(call, other))?;
        if self.rank() == 0 {
            let problem = "a tensor of rank 0 has no last axis";
            return Err(call.shape_error(&[self.shape()], problem, "add one with `unsqueeze`"));
        }
        let operands: Vec<&Self> = [self].into_iter().chain(others.iter().copied()).collect();
        let norm = Norm { kind, epsilon: epsilon.into() };
        apply(call, Op::Library(Library::Norm(norm)), &operands)
    }

    /// Returns a vector as a view that is broadcast along all axes but axis 1, 16-bit floats as
    /// `f32`.
    fn per_channel(&self, call: Call, vector: &Self) -> Result<Self> {
        self.check_same_type(call, vector)?;
        if self.rank() < 2 || *vector.shape() != [self.shape()[1]] {
            let (own, other) = (self.shape(), vector.shape());
            let problem = format!("{other} is not one element for each channel of {own}");
            let help = "channels are axis 1: pass vectors of its size";
            return Err(call.shape_error(&[own, other], problem, help));
        }
        let mut view = vector.same_size(call, 0, self, 1)?;
        for axis in 1..self.rank() - 1 {
            view = view.view(call, View::Unsqueeze(axis))?;
        }
        view.accumulated(call)
    }

    /// Returns a vector that has an element for each coordinate of the last axis.
    pub(super) fn checked_vector(&self, call: Call, vector: &Self, name: &str) -> Result<Self> {
        if vector.rank() == 1 && vector.shape().last() == self.shape().last() {
            return vector.same_size(call, 0, self, self.rank() - 1);
        }
        let (own, other) = (self.shape(), vector.shape());
        let problem = format!("a {name} of {other} is not one element for each column of {own}");
        let help = "pass a vector of the size of the last axis";
        Err(call.shape_error(&[own, other], problem, help))
    }

    /// Returns the tensor, whose `axis` must have the size of axis `of` of another. Where sizes are
    /// those of a run, each run checks them again.
    pub(super) fn same_size(
        &self,
        call: Call,
        axis: usize,
        other: &Self,
        of: usize,
    ) -> Result<Self> {
        apply(call, Op::View(View::SameSize { axis, other: of }), &[self, other])
    }

    /// Checks that another tensor has the same element type.
    pub(super) fn check_same_type(&self, call: Call, other: &Self) -> Result<()> {
        if self.dtype() == other.dtype() {
            return Ok(());
        }
        let (a, b) = (self.dtype(), other.dtype());
        let problem = format!("the element types differ: {a} and {b}");
        let help = format!("convert one of the tensors: `.cast(DType::{a:?})`");
        Err(call.error(ErrorKind::DType, problem, help))
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "softmax",
        summary: "softmax along an axis",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("softmax"),
        apply: Apply::Case(|draw, dtype| softmax_case(draw, dtype, false)),
    },
    Operation {
        name: "log_softmax",
        summary: "logarithm of the softmax along an axis",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("log_softmax"),
        apply: Apply::Case(|draw, dtype| softmax_case(draw, dtype, true)),
    },
    Operation {
        name: "layer_norm",
        summary: "layer norm along the last axis",
        types: FLOATS,
        tolerance: 1e-4,
        kernel: KernelSource::Library("layer_norm"),
        apply: Apply::Case(|draw, dtype| norm_case(draw, dtype, true)),
    },
    Operation {
        name: "rms_norm",
        summary: "RMS norm along the last axis",
        types: FLOATS,
        tolerance: 1e-4,
        kernel: KernelSource::Library("rms_norm"),
        apply: Apply::Case(|draw, dtype| norm_case(draw, dtype, false)),
    },
    Operation {
        name: "group_norm",
        summary: "group norm",
        types: FLOATS,
        tolerance: 2e-4,
        kernel: KernelSource::Library("layer_norm"),
        apply: Apply::Case(group_norm_case),
    },
    Operation {
        name: "batch_norm",
        summary: "batch norm with given statistics (inference)",
        types: FLOATS,
        tolerance: 2e-4,
        kernel: KernelSource::Generated,
        apply: Apply::Case(batch_norm_case),
    },
];

fn softmax_case(draw: &mut Draw, dtype: DType, is_log: bool) -> Case {
    let shape = draw.shape(1, 4);
    let axis = draw.below(shape.len());
    let x = draw.numbers(dtype, &shape);
    let wanted = x.along(axis, dtype, |line| {
        let sum: f64 = line.iter().map(|x| x.exp()).sum();
        line.iter().map(|x| if is_log { x - sum.ln() } else { x.exp() / sum }).collect()
    });
    Case::new(vec![x], wanted, move |it| match is_log {
        true => it[0].log_softmax(axis as i64),
        false => it[0].softmax(axis as i64),
    })
}

const EPSILON: f64 = 0.0625;

/// Scales to mean 0 and variance 1.
fn scaled(line: &[f64], is_centred: bool) -> Vec<f64> {
    let count = line.len() as f64;
    let mean = if is_centred { line.iter().sum::<f64>() / count } else { 0.0 };
    let square = line.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    line.iter().map(|x| (x - mean) / (square + EPSILON).sqrt()).collect()
}

fn norm_case(draw: &mut Draw, dtype: DType, is_layer: bool) -> Case {
    let shape = draw.shape(1, 3);
    let columns = *shape.last().unwrap_or(&1);
    let (x, weight) = (draw.numbers(dtype, &shape), draw.numbers(dtype, &[columns]));
    let bias = draw.numbers(dtype, &[columns]);
    let options = if is_layer { draw.below(4) } else { draw.below(2) };
    let (has_weight, has_bias) = (options & 1 == 1, options & 2 == 2);
    let wanted = x.along(shape.len() - 1, dtype, |line| {
        let scaled = scaled(line, is_layer).into_iter().enumerate();
        let scaled = scaled.map(|(n, x)| if has_weight { x * weight.values[n] } else { x });
        scaled.enumerate().map(|(n, x)| if has_bias { x + bias.values[n] } else { x }).collect()
    });
    Case::new(vec![x, weight, bias], wanted, move |it| {
        let (weight, bias) = (has_weight.then_some(&it[1]), has_bias.then_some(&it[2]));
        match is_layer {
            true => it[0].layer_norm(weight, bias, EPSILON as f32),
            false => it[0].rms_norm(weight, EPSILON as f32),
        }
    })
}

fn group_norm_case(draw: &mut Draw, dtype: DType) -> Case {
    let groups = draw.from_to(1, 3);
    let mut shape = draw.shape(2, 4);
    shape[1] = groups * draw.from_to(1, 3);
    let channels = shape[1];
    let x = draw.numbers(dtype, &shape);
    let (weight, bias) = (draw.numbers(dtype, &[channels]), draw.numbers(dtype, &[channels]));
    let rest = shape.iter().skip(1).product::<usize>() / groups;
    let flat = Array { shape: vec![shape[0] * groups, rest], ..x.clone() };
    let flat = flat.along(1, dtype, |line| scaled(line, true));
    let scaled = Array { shape: shape.clone(), ..flat };
    let wanted =
        scaled.like(&shape, |at| scaled.at(at) * weight.values[at[1]] + bias.values[at[1]]);
    Case::new(vec![x, weight, bias], wanted, move |it| {
        it[0].group_norm(groups, Some(&it[1]), Some(&it[2]), EPSILON as f32)
    })
}

fn batch_norm_case(draw: &mut Draw, dtype: DType) -> Case {
    let shape = draw.shape(2, 4);
    let mut vector = || draw.numbers(dtype, &[shape[1]]);
    let (mean, mut variance, weight, bias) = (vector(), vector(), vector(), vector());
    variance.values.iter_mut().for_each(|it| *it = it.abs() + 0.5);
    let x = draw.numbers(dtype, &shape);
    let wanted = x.like(&shape, |at| {
        let of = |vector: &Array| vector.values[at[1]];
        (x.at(at) - of(&mean)) / (of(&variance) + EPSILON).sqrt() * of(&weight) + of(&bias)
    });
    Case::new(vec![x, mean, variance, weight, bias], wanted, |it| {
        it[0].batch_norm(&it[1], &it[2], Some(&it[3]), Some(&it[4]), EPSILON as f32)
    })
}
