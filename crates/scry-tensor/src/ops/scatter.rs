//! Sums by indices.

use super::Binary;
use super::gather::coordinate;
use super::reference::{Case, Draw};
use super::{Apply, KernelSource, Operation};
use crate::dtype::{DType, INTEGERS, NUMBERS};
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::{Call, Result};
use crate::op::{Address, Computed, Library, Op, ScatterAdd};
use crate::shape::resolve_axis;
use crate::tensor::{Tensor, apply};

/// Sums by indices.
impl Tensor {
    /// Returns the tensor with slices of `source` added along an axis: slice `i` of `source` to
    /// slice `indices[i]`, also if several indices are equal, as PyTorch's `index_add`.
    /// `indices` is a vector of `i32` or `u32`; negative ones count from the end, and those out of
    /// range are dropped. 16-bit floats accumulate in `f32`, integers wrap. The order in which
    /// floats are added depends on the device.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2, 2], DType::I32, &gpu)?;
    /// let source = Tensor::new([[1, 2], [10, 20], [100, 200]], &gpu)?;
    /// let rows = Tensor::new([1, 0, -1], &gpu)?;
    /// assert_eq!(x.index_add(0, &rows, &source)?.to_vec::<i32>()?, [10, 20, 101, 202]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `source` has not one slice for each index; [`ErrorKind::Index`] if
    /// the axis is out of range; [`ErrorKind::DType`] if the types differ, or are not numbers;
    /// [`ErrorKind::Device`]; [`ErrorKind::Gpu`].
    #[doc(alias = "segment_sum")]
    #[track_caller]
    pub fn index_add(&self, axis: i64, indices: &Self, source: &Self) -> Result<Self> {
        let call = Call::new("Tensor::index_add");
        Self::in_scope_of(&[self, indices, source], || {
            let axis = self.check_scatter(call, axis, indices, source)?;
            let fits = indices.rank() == 1 && source.rank() == self.rank();
            if !fits {
                let (own, at, new) = (self.shape(), indices.shape(), source.shape());
                let problem = format!("a source of {new} and indices of {at} do not fit {own}");
                let help = "pass a vector of indices, and one slice of the source for each";
                return Err(call.shape_error(&[own, at, new], problem, help));
            }
            let like = self.moved(call, axis, 0)?;
            let address = Address { first: 0, indices: vec![Some(0)] };
            let positions =
                apply(call, Op::Computed(Computed::Address(address)), &[indices, &like])?;
            let source = source.moved(call, axis, 0)?.accumulated(call)?;
            let sums = ScatterAdd { is_flat: false };
            let sums =
                apply(call, Op::Library(Library::ScatterAdd(sums)), &[&source, &positions, &like])?;
            self.increased(call, &sums.moved(call, 0, axis)?)
        })
    }

    /// Returns the tensor with elements of `source` added: `source[i, j, …]` to the element at
    /// `indices[i, j, …]` along the axis, and at the same indices along the others, as PyTorch's
    /// `scatter_add`. Otherwise as [`index_add`](Self::index_add).
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::zeros([2, 3], DType::F32, &gpu)?;
    /// let columns = Tensor::new([[0, 2, 2], [1, 1, 1]], &gpu)?;
    /// let y = x.scatter_add(1, &columns, &Tensor::ones([2, 3], DType::F32, &gpu)?)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if `source` and the indices have different shapes, another number of
    /// axes, or a size, except that of the axis, that is larger than the tensor's; otherwise as
    /// [`index_add`](Self::index_add).
    #[track_caller]
    pub fn scatter_add(&self, axis: i64, indices: &Self, source: &Self) -> Result<Self> {
        let call = Call::new("Tensor::scatter_add");
        let axis = self.check_scatter(call, axis, indices, source)?;
        let index = |n: usize| (n == axis).then_some(0);
        let address = Address { first: 0, indices: (0..self.rank()).map(index).collect() };
        let positions = apply(call, Op::Computed(Computed::Address(address)), &[indices, self])?;
        let source = source.accumulated(call)?;
        let sums = ScatterAdd { is_flat: true };
        let sums =
            apply(call, Op::Library(Library::ScatterAdd(sums)), &[&source, &positions, self])?;
        self.increased(call, &sums)
    }

    fn check_scatter(&self, call: Call, axis: i64, indices: &Self, source: &Self) -> Result<usize> {
        let check = || {
            call.check_dtype(self.dtype(), NUMBERS)?;
            call.check_dtype(indices.dtype(), INTEGERS)?;
            self.check_same_type(call, source)?;
            resolve_axis(call, axis, self.rank())
        };
        Self::scoped(&[self, indices, source], check())
    }

    /// Returns 16-bit floats as `f32`.
    pub(super) fn accumulated(&self, call: Call) -> Result<Self> {
        let is_narrow = matches!(self.dtype(), DType::F16 | DType::BF16);
        if is_narrow { self.cast_for(call, DType::F32) } else { Ok(self.clone()) }
    }

    /// Returns the sum with a tensor that is `accumulated`, in the type of this one.
    fn increased(&self, call: Call, sums: &Self) -> Result<Self> {
        let total = Binary::ADD.apply(call, &self.accumulated(call)?.into(), &sums.into())?;
        total.narrowed(call, self.dtype())
    }

    /// Returns what was computed from [accumulated](Self::accumulated) operands as their type.
    pub(super) fn narrowed(&self, call: Call, dtype: DType) -> Result<Self> {
        if self.dtype() == dtype { Ok(self.clone()) } else { self.cast_for(call, dtype) }
    }
}

/// Returns the table's row of a sum.
const fn row(
    name: &'static str,
    summary: &'static str,
    apply: fn(&mut Draw, DType) -> Case,
) -> Operation {
    let (types, tolerance, kernel) = (NUMBERS, 1e-5, KernelSource::Library("scatter_add_rows"));
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("index_add", "adds slices along an axis, by a vector of indices", |draw, dtype| {
        let mut shape = draw.shape(1, 3);
        let axis = draw.below(shape.len());
        shape[axis] += 1;
        let x = draw.numbers(dtype, &shape);
        let count = draw.below(7);
        let indices = draw.indices(&[count], shape[axis]);
        let mut sizes = shape.clone();
        sizes[axis] = count;
        let new = draw.numbers(dtype, &sizes);
        let wanted = x.like(&shape, |at| {
            let mut own = at.to_vec();
            let hits =
                (0..count).filter(|n| coordinate(indices.values[*n], shape[axis]) == at[axis]);
            let sum: f64 = hits
                .map(|n| {
                    own[axis] = n;
                    new.at(&own)
                })
                .sum();
            x.at(at) + sum
        });
        Case::new(vec![x, indices, new], wanted, move |it| {
            it[0].index_add(axis as i64, &it[1], &it[2])
        })
    }),
    row("scatter_add", "adds elements at indices along an axis", |draw, dtype| {
        let mut shape = draw.shape(1, 3);
        let axis = draw.below(shape.len());
        shape[axis] += 1;
        let x = draw.numbers(dtype, &shape);
        let mut sizes: Vec<usize> = shape.iter().map(|size| draw.from_to(0, *size)).collect();
        sizes[axis] = draw.from_to(1, 5);
        let (indices, new) = (draw.indices(&sizes, shape[axis]), draw.numbers(dtype, &sizes));
        let mut wanted = x.clone();
        let _ = new.like(&sizes, |at| {
            let mut own = at.to_vec();
            own[axis] = coordinate(indices.at(at), shape[axis]);
            let place = own.iter().zip(&shape).fold(0, |sum, (at, size)| sum * size + at);
            wanted.values[place] += new.at(at);
            0.0
        });
        Case::new(vec![x, indices, new], wanted, move |it| {
            it[0].scatter_add(axis as i64, &it[1], &it[2])
        })
    }),
];
