//! Elements selected by indices in a tensor.

use crate::dtype::{ELEMENTS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::Op;
use crate::shape::resolve_axis;
use crate::tensor::{Tensor, apply};

/// Selections.
impl Tensor {
    /// Returns the coordinates of an axis that a vector of `i32` or `u32` lists, as PyTorch's
    /// `index_select`. Negative ones count from the end; one out of range selects zero.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4], [5, 6]], &gpu)?;
    /// let rows = Tensor::new([-1, 0], &gpu)?;
    /// assert_eq!(x.index_select(0, &rows)?.to_vec::<i32>()?, [5, 6, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the axis is out of range, or `indices` is not a vector;
    /// [`ErrorKind::DType`]; [`ErrorKind::Device`]; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn index_select(&self, axis: i64, indices: &Tensor) -> Result<Self> {
        let call = Call::new("Tensor::index_select");
        let axis = resolve_axis(call, axis, self.rank())?;
        if indices.rank() != 1 {
            let problem = format!("the indices have the shape {}, not one axis", indices.shape());
            return Err(call.error(ErrorKind::Index, problem, "use `i` for indices of any shape"));
        }
        self.gathered(call, axis, indices)
    }

    /// Returns the elements with an axis replaced by the axes of `indices`: each index selects a
    /// coordinate.
    pub(crate) fn gathered(&self, call: Call, axis: usize, indices: &Tensor) -> Result<Self> {
        call.check_dtype(self.dtype(), ELEMENTS)?;
        call.check_dtype(indices.dtype(), INTEGERS)?;
        apply(call, Op::Gather { axis }, &[self, indices])
    }
}
