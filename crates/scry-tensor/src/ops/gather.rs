//! Elements selected by indices in a tensor.

use crate::dtype::{DType, ELEMENTS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::expr::Expression;
use crate::lower::GatherAxis;
use crate::shape::{Layout, MAX_RANK, Shape, resolve_axis};
use crate::tensor::{Computation, Tensor};

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
        let (own, other) = (self.layout(), indices.layout());
        if own.shape[axis] > u32::MAX as usize {
            let problem = format!("axis {axis} of {} is too large for 32-bit indices", own.shape);
            return Err(call.error(ErrorKind::TooLarge, problem, "select a range of it first"));
        }
        let shape = with_axes(&own.shape, axis, &other.shape);
        if shape.len() > MAX_RANK {
            return Err(crate::tensor::rank_error(call, &shape.into()));
        }
        let (before, added) = (axis, indices.rank());
        let after = own.shape.len() - axis - 1;
        let (first, last) = (&own.strides[..axis], &own.strides[axis + 1..]);
        let own_strides = [first, &vec![0; added], last].concat();
        let other_strides = [&vec![0; before][..], &other.strides, &vec![0; after]].concat();
        let shape = Shape::from(shape);
        let layout = |offset, strides| Layout { shape: shape.clone(), strides, offset };
        let mut e = Expression::default();
        let index = e.operand(indices.dtype());
        let element = e.gathered(self.dtype(), index);
        let map = e.finish(element, self.dtype());
        let operands = vec![
            (indices, layout(other.offset, other_strides)),
            (self, layout(own.offset, own_strides)),
        ];
        let gathered = GatherAxis { stride: own.strides[axis], size: own.shape[axis] };
        if own.shape.contains(&0) && !shape.contains(&0) {
            // All indices are out of range.
            return self.zeros_like(call, shape.clone());
        }
        Computation { map: &map, shape, operands, gathered: Some(gathered), arguments: &[] }
            .run(call, self.runtime())
    }
}

/// Returns a shape with an axis replaced by others.
fn with_axes(shape: &[usize], axis: usize, others: &[usize]) -> Vec<usize> {
    [&shape[..axis], others, &shape[axis + 1..]].concat()
}

/// Returns the bytes of `count` elements, padded to whole words.
pub(super) fn padded(count: usize, dtype: DType) -> usize {
    (count * dtype.size()).next_multiple_of(4)
}
