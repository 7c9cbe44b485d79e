//! Elements selected by indices in a tensor.

use super::reference::{Array, Case};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, ELEMENTS, INTEGERS};
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Address, Computed, Library, Op, Selection};
use crate::shape::resolve_axis;
use crate::tensor::{Tensor, apply};

/// Selections.
impl Tensor {
    /// Returns the slices along an axis that a vector of indices, of `i32` or `u32`, selects, as
    /// PyTorch's `index_select` and NumPy's `take`. Negative indices count from the end; one out of
    /// range selects zeros.
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
    #[doc(alias = "take")]
    #[track_caller]
    pub fn index_select(&self, axis: i64, indices: &Tensor) -> Result<Self> {
        let call = Call::new("Tensor::index_select");
        Self::in_scope_of(&[self, indices], || {
            let axis = resolve_axis(call, axis, self.rank())?;
            if indices.rank() != 1 {
                let problem =
                    format!("the indices have the shape {}, not one axis", indices.shape());
                return Err(call.error(
                    ErrorKind::Index,
                    problem,
                    "use `i` for indices of any shape",
                ));
            }
            self.gathered(call, axis, indices)
        })
    }

    /// Returns the elements along an axis at indices that have as many axes: element `[i, j, …]` of
    /// the result is the one at `indices[i, j, …]` along the axis, and at the same indices along
    /// the others, as PyTorch's `gather` and NumPy's `take_along_axis`. Negative indices count from
    /// the end; one out of range selects zero.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?;
    /// let columns = Tensor::new([[1], [0]], &gpu)?;
    /// assert_eq!(x.gather(1, &columns)?.to_vec::<i32>()?, [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the indices have another number of axes, or a size, except that of
    /// the axis, is larger; otherwise as [`index_select`](Self::index_select).
    #[doc(alias = "take_along_axis")]
    #[track_caller]
    pub fn gather(&self, axis: i64, indices: &Tensor) -> Result<Self> {
        let call = Call::new("Tensor::gather");
        Self::in_scope_of(&[self, indices], || {
            let axis = resolve_axis(call, axis, self.rank())?;
            call.check_dtype(self.dtype(), ELEMENTS)?;
            call.check_dtype(indices.dtype(), INTEGERS)?;
            apply(call, Op::Gather(Selection { axis, is_along: true }), &[self, indices])
        })
    }

    /// Returns the rows of a table that indices of any shape select: `weights.embedding(&tokens)`.
    /// Their axes replace the first one. Negative indices count from the end; one out of range
    /// selects zeros. Rows of quantised weights are dequantised to `f32`, and only those that are
    /// selected.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let table = Tensor::new([[0.0f32, 0.5], [1.0, 1.5], [2.0, 2.5]], &gpu)?;
    /// let tokens = Tensor::new([[2u32], [0]], &gpu)?;
    /// let rows = table.embedding(&tokens)?;
    /// assert_eq!(*rows.shape(), [2, 1, 2]);
    /// assert_eq!(rows.to_vec::<f32>()?, [2.0, 2.5, 0.0, 0.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`index_select`](Self::index_select).
    #[track_caller]
    pub fn embedding(&self, indices: &Tensor) -> Result<Self> {
        let call = Call::new("Tensor::embedding");
        Self::in_scope_of(&[self, indices], || {
            let axis = resolve_axis(call, 0, self.rank())?;
            match self.dtype().is_quantized() {
                true => self.dequantized_rows(call, indices),
                false => self.gathered(call, axis, indices),
            }
        })
    }

    /// Returns the rows of quantised weights at indices, as `f32`.
    fn dequantized_rows(&self, call: Call, indices: &Tensor) -> Result<Self> {
        call.check_dtype(indices.dtype(), INTEGERS)?;
        let rows = Op::Library(Library::QuantizedRows);
        if indices.dtype() == DType::U32 {
            return apply(call, rows, &[self, indices]);
        }
        // Negative ones count from the end.
        let address = Address { first: 0, indices: vec![Some(0)] };
        let positions = apply(call, Op::Computed(Computed::Address(address)), &[indices, self])?;
        apply(call, rows, &[self, &positions])
    }

    /// Returns the elements with an axis replaced by the axes of `indices`: each index selects a
    /// coordinate.
    pub(crate) fn gathered(&self, call: Call, axis: usize, indices: &Tensor) -> Result<Self> {
        call.check_dtype(self.dtype(), ELEMENTS)?;
        call.check_dtype(indices.dtype(), INTEGERS)?;
        apply(call, Op::Gather(Selection { axis, is_along: false }), &[self, indices])
    }
}

/// Returns the coordinate of an index, which counts from the end if it is negative.
pub(super) fn coordinate(index: f64, size: usize) -> usize {
    (if index < 0.0 { index + size as f64 } else { index }) as usize
}

/// Returns the table's row of a selection.
const fn row(
    name: &'static str,
    summary: &'static str,
    apply: fn(&mut super::reference::Draw, DType) -> Case,
) -> Operation {
    let (types, tolerance, kernel) = (ELEMENTS, 0.0, KernelSource::Generated);
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("index_select", "slices along an axis, by a vector of indices", |draw, dtype| {
        let mut shape = draw.shape(1, 4);
        let axis = draw.below(shape.len());
        shape[axis] += 1;
        let (x, count) = (draw.numbers(dtype, &shape), draw.below(5));
        let indices = draw.indices(&[count], shape[axis]);
        let mut selected = shape.clone();
        selected[axis] = count;
        let wanted = x.like(&selected, |at| {
            let mut own = at.to_vec();
            own[axis] = coordinate(indices.values[at[axis]], shape[axis]);
            x.at(&own)
        });
        Case::new(vec![x, indices], wanted, move |it| it[0].index_select(axis as i64, &it[1]))
    }),
    row("gather", "elements at indices along an axis", |draw, dtype| {
        let mut shape = draw.shape(1, 4);
        let axis = draw.below(shape.len());
        shape[axis] += 1;
        let x = draw.numbers(dtype, &shape);
        let mut sizes: Vec<usize> = shape.iter().map(|size| draw.from_to(0, *size)).collect();
        sizes[axis] = draw.from_to(1, 4);
        let indices = draw.indices(&sizes, shape[axis]);
        let wanted = x.like(&sizes, |at| {
            let mut own = at.to_vec();
            own[axis] = coordinate(indices.at(at), shape[axis]);
            x.at(&own)
        });
        Case::new(vec![x, indices], wanted, move |it| it[0].gather(axis as i64, &it[1]))
    }),
    row("embedding", "rows of a table, by indices of any shape", |draw, dtype| {
        let mut shape = draw.shape(1, 3);
        shape[0] += 1;
        let (x, places) = (draw.numbers(dtype, &shape), draw.shape(0, 2));
        let indices: Array = draw.indices(&places, shape[0]);
        let wanted = x.like(&[&places, &shape[1..]].concat(), |at| {
            let (place, rest) = at.split_at(places.len());
            x.at(&[&[coordinate(indices.at(place), shape[0])], rest].concat())
        });
        Case::new(vec![x, indices], wanted, |it| it[0].embedding(&it[1]))
    }),
];
