//! Views: other shapes of the same elements, without copies.

use super::Tensor;
use super::apply;
use crate::dtype::ELEMENTS;
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Op, View};
use crate::shape::{Dims, Shape, resolve_axis};
use crate::stored::check_device;

/// Views.
impl Tensor {
    /// Returns the same elements in row-major order with another shape. One size may be -1. Copies
    /// the elements if no view has them in this order.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(6, DType::I32, &gpu)?.reshape([2, -1])?;
    /// assert_eq!(*x.shape(), [2, 3]);
    /// assert_eq!(x.t()?.reshape([6])?.to_vec::<i32>()?, [0, 3, 1, 4, 2, 5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the number of elements differs; [`ErrorKind::Gpu`].
    #[doc(alias("view", "flatten", "ravel"))]
    #[track_caller]
    pub fn reshape(&self, shape: impl Into<Dims>) -> Result<Self> {
        let call = Call::new("Tensor::reshape");
        self.in_scope(|| {
            let dims = shape.into();
            if self.dtype().is_quantized() {
                let shape = dims.resolve(call, self.shape(), self.numel())?;
                if shape.last() != self.shape().last() {
                    let problem = format!("rows of {} cannot be split or merged", self.dtype());
                    let help = "dequantise with `.cast()` first";
                    return Err(call.error(ErrorKind::DType, problem, help));
                }
            }
            self.view(call, View::Reshape(dims))
        })
    }

    /// Returns a view with the axes in another order, as NumPy's `transpose(axes)`. Negative axes
    /// count from the last.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2, 3, 4], DType::F32, &gpu)?;
    /// assert_eq!(*x.permute([2, 0, 1])?.shape(), [4, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if an axis is missing, given twice or out of range.
    #[track_caller]
    pub fn permute(&self, axes: impl AsRef<[i64]>) -> Result<Self> {
        let call = Call::new("Tensor::permute");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            let (axes, rank) = (axes.as_ref(), self.rank());
            let mut order = Vec::new();
            for axis in axes {
                order.push(resolve_axis(call, *axis, rank)?);
            }
            let is_complete = order.len() == rank && (0..rank).all(|axis| order.contains(&axis));
            if !is_complete {
                let problem = format!("{axes:?} does not have each of the {rank} axes once");
                return Err(call.error(ErrorKind::Index, problem, "list all axes, each once"));
            }
            self.view(call, View::Permute(order))
        })
    }

    /// Returns a view with two axes exchanged.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2, 3, 4], DType::F32, &gpu)?;
    /// assert_eq!(*x.transpose(0, -1)?.shape(), [4, 3, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if an axis is out of range.
    #[doc(alias = "swapaxes")]
    #[track_caller]
    pub fn transpose(&self, first: i64, second: i64) -> Result<Self> {
        self.exchanged(Call::new("Tensor::transpose"), first, second)
    }

    /// Returns a view of a matrix, or of a stack of matrices, with rows and columns exchanged.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2, 3], [4, 5, 6]], &gpu)?;
    /// assert_eq!(x.t()?.to_vec::<i32>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] for tensors of rank 0 and 1.
    #[doc(alias = "T")]
    #[track_caller]
    pub fn t(&self) -> Result<Self> {
        let call = Call::new("Tensor::t");
        self.in_scope(|| {
            if self.rank() < 2 {
                let problem = format!("the shape is {}, not that of a matrix", self.shape());
                return Err(call.error(ErrorKind::Index, problem, "add an axis with `unsqueeze`"));
            }
            self.exchanged(call, -2, -1)
        })
    }

    fn exchanged(&self, call: Call, first: i64, second: i64) -> Result<Self> {
        self.in_scope(|| {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            let mut order: Vec<usize> = (0..self.rank()).collect();
            let first = resolve_axis(call, first, self.rank())?;
            order.swap(first, resolve_axis(call, second, self.rank())?);
            self.view(call, View::Permute(order))
        })
    }

    /// Returns a view broadcast to a shape: axes of size 1 are repeated, and new axes are inserted
    /// before the first.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1], [2]], &gpu)?.expand([2, 3])?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if another size than 1 differs.
    #[doc(alias("broadcast_to", "repeat"))]
    #[track_caller]
    pub fn expand(&self, shape: impl Into<Shape>) -> Result<Self> {
        let call = Call::new("Tensor::expand");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            self.view(call, View::Expand(shape.into()))
        })
    }

    /// Returns views of two tensors, broadcast to the shape that they have together.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (Tensor::new([[1], [2]], &gpu)?, Tensor::new([3, 4, 5], &gpu)?);
    /// let (x, y) = x.broadcast_with(&y)?;
    /// assert_eq!((x.shape(), y.shape().rank()), (y.shape(), 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the shapes do not broadcast; [`ErrorKind::Device`];
    /// [`ErrorKind::DType`] for quantised weights.
    #[track_caller]
    pub fn broadcast_with(&self, other: &Self) -> Result<(Self, Self)> {
        let call = Call::new("Tensor::broadcast_with");
        self.in_scope(|| {
            check_device(call, self.runtime(), other.runtime())?;
            call.check_dtype(self.dtype(), ELEMENTS)?;
            call.check_dtype(other.dtype(), ELEMENTS)?;
            let like = |x, other| apply(call, Op::View(View::Like), &[x, other]);
            Ok((like(self, other)?, like(other, self)?))
        })
    }

    /// Returns a view with a new axis of size 1 at this position; negative positions count from
    /// the end.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// assert_eq!(*Tensor::new([1, 2], &gpu)?.unsqueeze(-1)?.shape(), [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the position is out of range.
    #[doc(alias("newaxis", "expand_dims"))]
    #[track_caller]
    pub fn unsqueeze(&self, axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::unsqueeze");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            let last = self.rank() as i64;
            let position = if axis < 0 { axis.saturating_add(last + 1) } else { axis };
            if !(0..=last).contains(&position) {
                let problem = format!("position {axis} is out of range for rank {last}");
                let help = format!("use a position from {} to {last}", -last - 1);
                return Err(call.error(ErrorKind::Index, problem, help));
            }
            self.view(call, View::Unsqueeze(position as usize))
        })
    }

    /// Returns a view without an axis, which must have size 1.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2]], &gpu)?;
    /// assert_eq!(*x.squeeze(0)?.shape(), [2]);
    /// assert!(x.squeeze(1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the axis has another size; [`ErrorKind::Index`].
    #[track_caller]
    pub fn squeeze(&self, axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::squeeze");
        self.in_scope(|| {
            call.check_dtype(self.dtype(), ELEMENTS)?;
            let axis = resolve_axis(call, axis, self.rank())?;
            self.view(call, View::Squeeze(axis))
        })
    }
}
