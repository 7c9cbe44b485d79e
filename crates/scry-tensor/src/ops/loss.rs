//! Losses.

use super::reference::{Array, Case};
use super::{Apply, Binary, KernelSource, Operation, Unary};
use crate::dtype::{DType, FLOATS, INTEGERS};
use crate::error::{Call, Result};
use crate::op::{Op, Selection, View};
use crate::shape::{Axes, resolve_axis};
use crate::tensor::{Tensor, apply};

/// Losses.
impl Tensor {
    /// Returns the mean squared error: the mean of the squared differences from `target`. Shapes
    /// are broadcast.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (Tensor::new([1.0f32, 2.0], &gpu)?, Tensor::new([1.0f32, 4.0], &gpu)?);
    /// assert_eq!(x.mse_loss(&y)?.item::<f32>()?, 2.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) if the shapes do not broadcast;
    /// [`ErrorKind::DType`](crate::ErrorKind::DType) if the types differ, or are not floats;
    /// [`ErrorKind::Device`](crate::ErrorKind::Device); [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn mse_loss(&self, target: &Self) -> Result<Self> {
        let call = Call::new("Tensor::mse_loss");
        Self::in_scope_of(&[self, target], || {
            call.check_dtype(self.dtype(), FLOATS)?;
            let difference = Binary::SUB.apply(call, &self.into(), &target.into())?;
            Unary::SQUARE.apply(call, &difference)?.averaged(call, &Axes::from(..))
        })
    }

    /// Returns the mean cross-entropy loss of logits and class indices, as PyTorch's
    /// `cross_entropy`: axis 1 of `self` are the logits of the classes; `target`, of `i32` or
    /// `u32`, has the shape of `self` without axis 1. Classes out of range, such as -100 (PyTorch's
    /// `ignore_index`), are ignored; the loss is NaN if all are.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let logits = Tensor::new([[0.0f32, 0.0], [0.0, 200.0]], &gpu)?;
    /// let loss = logits.cross_entropy(&Tensor::new([1u32, 1], &gpu)?)?.item::<f32>()?;
    /// assert!((loss - 2f32.ln() / 2.0).abs() < 1e-6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for a target of another shape;
    /// [`ErrorKind::Index`](crate::ErrorKind::Index) for logits with fewer than 2 axes;
    /// [`ErrorKind::DType`](crate::ErrorKind::DType);
    /// [`ErrorKind::Device`](crate::ErrorKind::Device); [`ErrorKind::Gpu`](crate::ErrorKind::Gpu).
    #[track_caller]
    pub fn cross_entropy(&self, target: &Self) -> Result<Self> {
        let call = Call::new("Tensor::cross_entropy");
        Self::in_scope_of(&[self, target], || {
            call.check_dtype(self.dtype(), FLOATS)?;
            call.check_dtype(target.dtype(), INTEGERS)?;
            let axis = resolve_axis(call, 1, self.rank())?;
            let mut expected = self.shape().to_vec();
            expected.remove(axis);
            if **target.shape() != expected[..] {
                let (own, other) = (self.shape(), target.shape());
                let problem = format!("a target of {other} does not fit logits of {own}");
                let help = "pass a class index for each position: the shape of the logits without \
                            axis 1";
                return Err(call.shape_error(&[own, other], problem, help));
            }
            let mut target = target.clone();
            for own in (0..self.rank()).filter(|own| *own != axis) {
                target = target.same_size(call, own - usize::from(own > axis), self, own)?;
            }
            let logs = self.rows(call, 1, FLOATS, crate::op::Rows::LogSoftmax)?;
            // Negative classes become large ones, out of range, rather than count from the end.
            let at = target.cast_for(call, DType::U32)?.view(call, View::Unsqueeze(axis))?;
            let select = |from: &Self| {
                let gather = Op::Gather(Selection { axis, is_along: true });
                apply(call, gather, &[from, &at])?
                    .cast_for(call, DType::F32)?
                    .summed(call, &(..).into())
            };
            // True for each logit, even NaN; what is selected out of range is false.
            let is_equal = Binary::EQ.apply(call, &(&logs).into(), &(&logs).into())?;
            let is_nan = Binary::NE.apply(call, &(&logs).into(), &(&logs).into())?;
            let is_logit = Binary::NE.apply(call, &is_equal.into(), &is_nan.into())?;
            let mean =
                Binary::DIV.apply(call, &select(&logs)?.into(), &select(&is_logit)?.into())?;
            Unary::NEG.apply(call, &mean)?.narrowed(call, self.dtype())
        })
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "mse_loss",
        summary: "mean of squared differences",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("reduce_rows"),
        apply: Apply::Case(|draw, dtype| {
            let shape = draw.shape(1, 3);
            let (x, y) = (draw.numbers(dtype, &shape), draw.numbers(dtype, &shape));
            let squares = x.values.iter().zip(&y.values).map(|(a, b)| (a - b).powi(2));
            let mean = squares.sum::<f64>() / x.values.len() as f64;
            let wanted = Array::build(dtype, &[], |_| mean);
            Case::new(vec![x, y], wanted, |it| it[0].mse_loss(&it[1]))
        }),
    },
    Operation {
        name: "cross_entropy",
        summary: "mean cross-entropy of logits and class indices",
        types: FLOATS,
        tolerance: 1e-5,
        kernel: KernelSource::Library("log_softmax"),
        apply: Apply::Case(|draw, dtype| {
            let mut shape = draw.shape(2, 3);
            shape[1] += 1;
            let x = draw.numbers(dtype, &shape);
            let mut others = shape.clone();
            others.remove(1);
            // One in three is out of range, and ignored.
            let mut classes = draw.indices(&others, shape[1]);
            classes.values.iter_mut().take(1).for_each(|class| *class = 0.0);
            for class in classes.values.iter_mut().skip(1).step_by(3) {
                *class = -100.0;
            }
            let logs = x.along(1, dtype, |line| {
                let sum: f64 = line.iter().map(|x| x.exp()).sum();
                line.iter().map(|x| sum.ln() - x).collect()
            });
            let (mut sum, mut count) = (0.0, 0.0);
            let _ = classes.like(&others, |at| {
                let class = classes.at(at);
                if class >= 0.0 && class < shape[1] as f64 {
                    let mut own = at.to_vec();
                    own.insert(1, class as usize);
                    (sum, count) = (sum + logs.at(&own), count + 1.0);
                }
                0.0
            });
            let wanted = Array::build(dtype, &[], |_| sum / count);
            Case::new(vec![x, classes], wanted, |it| it[0].cross_entropy(&it[1]))
        }),
    },
];
