//! Joining, splitting, padding, reversing and shifting.

use super::reference::{Array, Case};
use super::{Apply, KernelSource, Operation};
use crate::dtype::ELEMENTS;
use crate::error::{Call, ErrorKind, Result};
use crate::op::{Join, Op, Part, View};
use crate::scalar::Scalar;
use crate::shape::{Axes, resolve_axis};
use crate::tensor::{Tensor, apply, join_blocks};

/// The most tensors that one kernel joins, so that it has few buffers.
const MAX_JOINED: usize = 4;

/// Joining, splitting and moving.
impl Tensor {
    /// Returns tensors joined along an axis, as NumPy's `concatenate`. Other axes must have the
    /// same sizes.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (Tensor::new([[1, 2]], &gpu)?, Tensor::new([[3, 4], [5, 6]], &gpu)?);
    /// assert_eq!(Tensor::concat(&[&x, &y], 0)?.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is no tensor, or other sizes differ; [`ErrorKind::Index`] if
    /// the axis is out of range; [`ErrorKind::DType`] if the types differ, or for quantised
    /// weights, except along the first of several axes and in memory; [`ErrorKind::Device`];
    /// [`ErrorKind::TooLarge`]; [`ErrorKind::Gpu`].
    #[doc(alias("cat", "concatenate"))]
    #[track_caller]
    pub fn concat(tensors: &[&Self], axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::concat");
        if let Some(weights) = tensors.first().filter(|it| it.dtype().is_quantized())
            && resolve_axis(call, axis, weights.rank())? == 0
        {
            return join_blocks(call, tensors);
        }
        let first = first(call, tensors)?;
        let axis = resolve_axis(call, axis, first.rank())?;
        joined(call, tensors, axis)
    }

    /// Returns tensors of one shape joined along a new axis; a negative position counts from the
    /// end.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let (x, y) = (Tensor::new([1, 2], &gpu)?, Tensor::new([3, 4], &gpu)?);
    /// assert_eq!(Tensor::stack(&[&x, &y], -1)?.to_vec::<i32>()?, [1, 3, 2, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`concat`](Self::concat).
    #[track_caller]
    pub fn stack(tensors: &[&Self], axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::stack");
        let first = first(call, tensors)?;
        let axis = resolve_axis(call, axis, first.rank() + 1)?;
        if let Some(other) = tensors.iter().find(|it| it.shape() != first.shape()) {
            let (a, b) = (first.shape(), other.shape());
            let problem = format!("the shapes differ: {a} and {b}");
            return Err(call.shape_error(
                &[a, b],
                problem,
                "join them along an axis with `concat`",
            ));
        }
        let with_axis = |it: &&Self| it.view(call, View::Unsqueeze(axis));
        let views = tensors.iter().map(with_axis).collect::<Result<Vec<_>>>()?;
        joined(call, &views.iter().collect::<Vec<_>>(), axis)
    }

    /// Returns views of consecutive parts along an axis, with these sizes.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let parts = Tensor::arange(5, DType::I32, &gpu)?.split(&[2, 3], 0)?;
    /// assert_eq!(parts[1].to_vec::<i32>()?, [2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if the sizes do not add up to that of the axis; [`ErrorKind::Index`] if
    /// the axis is out of range; [`ErrorKind::DType`] for quantised weights.
    #[doc(alias = "chunk")]
    #[track_caller]
    pub fn split(&self, sizes: &[usize], axis: i64) -> Result<Vec<Self>> {
        let call = Call::new("Tensor::split");
        call.check_dtype(self.dtype(), ELEMENTS)?;
        let axis = resolve_axis(call, axis, self.rank())?;
        let total = sizes.iter().fold(0usize, |sum, size| sum.saturating_add(*size));
        // Checks the total, also without parts.
        self.view(call, View::Narrow { axis, start: 0, len: 0, size: total })?;
        let mut start = 0;
        let part = |len: &usize| {
            let view = View::Narrow { axis, start, len: *len, size: total };
            start += *len;
            self.view(call, view)
        };
        sizes.iter().map(part).collect()
    }

    /// Returns the tensor with constant padding, as NumPy's `pad`: `widths` has the numbers of
    /// elements before and after each axis, which are `value`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2]], &gpu)?;
    /// assert_eq!(x.pad(&[[0, 1], [1, 0]], 9)?.to_vec::<i32>()?, [9, 1, 2, 9, 9, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] if there is not one pair for each axis; [`ErrorKind::DType`] or
    /// [`ErrorKind::Value`] if the value does not fit the type; [`ErrorKind::TooLarge`];
    /// [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn pad(&self, widths: &[[usize; 2]], value: impl Into<Scalar>) -> Result<Self> {
        let call = Call::new("Tensor::pad");
        call.check_dtype(self.dtype(), ELEMENTS)?;
        let bits = value.into().bits(call, self.dtype())?;
        if widths.len() != self.rank() {
            let (count, own) = (widths.len(), self.shape());
            let problem = format!("{count} pairs of widths do not fit {own}");
            return Err(call.shape_error(&[own], problem, "pass a pair for each axis"));
        }
        let join = Join::Pad { widths: widths.to_vec(), value: bits };
        apply(call, Op::Join(join), &[self])
    }

    /// Returns a view with the elements along axes in reverse order, as NumPy's `flip`.
    ///
    /// ```
    /// use scry_tensor::{Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::new([[1, 2], [3, 4]], &gpu)?;
    /// assert_eq!(x.flip(-1)?.to_vec::<i32>()?, [2, 1, 4, 3]);
    /// assert_eq!(x.flip(..)?.to_vec::<i32>()?, [4, 3, 2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if an axis is out of range or given twice; [`ErrorKind::DType`] for
    /// quantised weights.
    #[track_caller]
    pub fn flip(&self, axes: impl Into<Axes>) -> Result<Self> {
        let call = Call::new("Tensor::flip");
        call.check_dtype(self.dtype(), ELEMENTS)?;
        let reversed = Part::Range { start: None, end: None, step: -1 };
        let part = |is_reversed: bool| if is_reversed { reversed } else { Part::Full };
        let parts = axes.into().resolve(call, self.rank())?.into_iter().map(part);
        self.view(call, View::Index(parts.collect()))
    }

    /// Returns the tensor shifted by `shift` along an axis; elements that leave at one end enter at
    /// the other, as NumPy's `roll`.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let x = Tensor::arange(5, DType::I32, &gpu)?;
    /// assert_eq!(x.roll(2, 0)?.to_vec::<i32>()?, [3, 4, 0, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Index`] if the axis is out of range; [`ErrorKind::DType`] for quantised
    /// weights; [`ErrorKind::Gpu`].
    #[track_caller]
    pub fn roll(&self, shift: i64, axis: i64) -> Result<Self> {
        let call = Call::new("Tensor::roll");
        call.check_dtype(self.dtype(), ELEMENTS)?;
        let axis = resolve_axis(call, axis, self.rank())?;
        apply(call, Op::Join(Join::Roll { axis, shift }), &[self])
    }
}

/// Checks that there are tensors of one type, and returns the first one.
fn first<'t>(call: Call, tensors: &[&'t Tensor]) -> Result<&'t Tensor> {
    let Some(first) = tensors.first() else {
        let help = "pass at least one tensor";
        return Err(call.error(ErrorKind::Shape, "there are no tensors to join", help));
    };
    call.check_dtype(first.dtype(), ELEMENTS)?;
    tensors.iter().try_for_each(|other| first.check_same_type(call, other))?;
    Ok(first)
}

/// Joins tensors, a few at a time.
fn joined(call: Call, tensors: &[&Tensor], axis: usize) -> Result<Tensor> {
    let mut tensors: Vec<Tensor> = tensors.iter().copied().cloned().collect();
    loop {
        let join = |tensors: &[Tensor]| match tensors {
            [only] => Ok(only.clone()),
            _ => {
                let op = Op::Join(Join::Concat { axis });
                apply(call, op, &tensors.iter().collect::<Vec<_>>())
            }
        };
        if tensors.len() <= MAX_JOINED {
            return join(&tensors);
        }
        tensors = tensors.chunks(MAX_JOINED).map(join).collect::<Result<_>>()?;
    }
}

/// Returns the table's row of a function of any elements.
const fn row(
    name: &'static str,
    summary: &'static str,
    apply: fn(&mut super::reference::Draw, crate::DType) -> Case,
) -> Operation {
    let (types, tolerance, kernel) = (ELEMENTS, 0.0, KernelSource::Generated);
    Operation { name, summary, types, tolerance, kernel, apply: Apply::Case(apply) }
}

/// Returns the table's row of a view.
const fn view(
    name: &'static str,
    summary: &'static str,
    apply: fn(&mut super::reference::Draw, crate::DType) -> Case,
) -> Operation {
    Operation { kernel: KernelSource::View, ..row(name, summary, apply) }
}

pub(super) const OPERATIONS: &[Operation] = &[
    row("concat", "tensors joined along an axis", |draw, dtype| {
        let shape = draw.shape(1, 3);
        let (axis, count) = (draw.below(shape.len()), draw.from_to(1, 6));
        let mut parts = Vec::new();
        for _ in 0..count {
            let mut shape = shape.clone();
            shape[axis] = draw.below(4);
            parts.push(draw.numbers(dtype, &shape));
        }
        let mut joined = shape;
        joined[axis] = parts.iter().map(|part| part.shape[axis]).sum();
        let wanted = Array::build(dtype, &joined, |at| {
            let mut at = at.to_vec();
            for part in &parts {
                match at[axis].checked_sub(part.shape[axis]) {
                    None => return part.at(&at),
                    Some(rest) => at[axis] = rest,
                }
            }
            f64::NAN
        });
        Case::new(parts, wanted, move |it| {
            Tensor::concat(&it.iter().collect::<Vec<_>>(), axis as i64)
        })
    }),
    row("stack", "tensors joined along a new axis", |draw, dtype| {
        let shape = draw.shape(0, 3);
        let (axis, count) = (draw.below(shape.len() + 1), draw.from_to(1, 5));
        let parts: Vec<Array> = (0..count).map(|_| draw.numbers(dtype, &shape)).collect();
        let mut joined = shape;
        joined.insert(axis, count);
        let wanted = Array::build(dtype, &joined, |at| {
            let mut at = at.to_vec();
            let part = at.remove(axis);
            parts[part].at(&at)
        });
        Case::new(parts, wanted, move |it| {
            Tensor::stack(&it.iter().collect::<Vec<_>>(), axis as i64)
        })
    }),
    view("split", "views of parts along an axis", |draw, dtype| {
        let mut shape = draw.shape(1, 4);
        let axis = draw.below(shape.len());
        let (start, len) = (draw.below(shape[axis] + 1), shape[axis]);
        let x = draw.numbers(dtype, &shape);
        shape[axis] = len - start;
        let wanted = x.like(&shape, |at| {
            let mut at = at.to_vec();
            at[axis] += start;
            x.at(&at)
        });
        Case::new(vec![x], wanted, move |it| {
            Ok(it[0].split(&[start, len - start], axis as i64)?.remove(1))
        })
    }),
    row("pad", "constant padding", |draw, dtype| {
        let shape = draw.shape(0, 4);
        let widths: Vec<[usize; 2]> =
            shape.iter().map(|_| [draw.below(3), draw.below(3)]).collect();
        let x = draw.numbers(dtype, &shape);
        let sizes = shape.iter().zip(&widths).map(|(size, [a, b])| size + a + b);
        let padded: Vec<usize> = sizes.collect();
        let wanted = x.like(&padded, |at| {
            let own = at.iter().zip(&widths).map(|(at, [before, _])| at.checked_sub(*before));
            let own: Option<Vec<usize>> = own.collect();
            let own = own.filter(|own| own.iter().zip(&x.shape).all(|(at, size)| at < size));
            own.map_or(1.0, |own| x.at(&own))
        });
        Case::new(vec![x], wanted, move |it| match dtype {
            crate::DType::Bool => it[0].pad(&widths, true),
            _ => it[0].pad(&widths, 1),
        })
    }),
    view("flip", "view with axes reversed", |draw, dtype| {
        let shape = draw.shape(1, 4);
        let axis = draw.below(shape.len());
        let x = draw.numbers(dtype, &shape);
        let wanted = x.like(&shape, |at| {
            let mut at = at.to_vec();
            at[axis] = shape[axis] - 1 - at[axis];
            x.at(&at)
        });
        Case::new(vec![x], wanted, move |it| it[0].flip(axis as i64))
    }),
    row("roll", "circular shift along an axis", |draw, dtype| {
        let shape = draw.shape(1, 4);
        let (axis, shift) = (draw.below(shape.len()), draw.below(15) as i64 - 7);
        let x = draw.numbers(dtype, &shape);
        let wanted = x.like(&shape, |at| {
            let mut at = at.to_vec();
            at[axis] = (at[axis] as i64 - shift).rem_euclid(shape[axis] as i64) as usize;
            x.at(&at)
        });
        Case::new(vec![x], wanted, move |it| it[0].roll(shift, axis as i64))
    }),
];
