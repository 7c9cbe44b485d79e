//! Shapes and axes as programs ask for them: negative numbers, single numbers, arrays.

use std::ops::RangeFull;

use super::Shape;
use crate::error::{Call, ErrorKind, Result};

/// The sizes that [`Tensor::reshape`](crate::Tensor::reshape) accepts: an array, slice or `Vec` of
/// integers, or a [`Shape`]; one size may be -1.
///
/// ```
/// use scry_tensor::{DType, Device, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let x = Tensor::zeros([2, 6], DType::F32, &gpu)?;
/// assert_eq!(*x.reshape([3, -1])?.shape(), [3, 4]);
/// assert_eq!(*x.reshape(vec![12usize])?.shape(), [12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dims(Vec<i64>);

/// The axes of a reduction: a number, an array of numbers, or `..` for all. Negative numbers count
/// from the last axis.
///
/// ```
/// use scry_tensor::Axes;
///
/// assert_eq!(Axes::from(-1), Axes::from([-1]));
/// assert_ne!(Axes::from(..), Axes::from([0, 1]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes(Option<Vec<i64>>);

impl Dims {
    /// Returns the shape with `count` elements.
    pub(crate) fn resolve(&self, call: Call, old: &Shape, count: usize) -> Result<Shape> {
        let unknown = self.0.iter().filter(|size| **size == -1).count();
        let known: Option<usize> =
            self.0.iter().filter(|size| **size != -1).try_fold(1usize, |product, size| {
                product.checked_mul(usize::try_from(*size).ok()?)
            });
        let fill = match (unknown, known) {
            (0, Some(known)) if known == count => Some(0),
            (1, Some(known)) if known > 0 && count.is_multiple_of(known) => Some(count / known),
            _ => None,
        };
        let Some(fill) = fill else {
            return Err(call.shape_error(
                &[old],
                format!("{old} has {count} elements, which do not have the shape {:?}", self.0),
                "use sizes with the same product; one of them may be -1",
            ));
        };
        let size = |size: &i64| usize::try_from(*size).unwrap_or(fill);
        Ok(self.0.iter().map(size).collect::<Vec<_>>().into())
    }
}

impl Axes {
    /// Returns for each axis of a shape whether it is among these.
    pub(crate) fn resolve(&self, call: Call, rank: usize) -> Result<Vec<bool>> {
        let Some(axes) = &self.0 else { return Ok(vec![true; rank]) };
        let mut chosen = vec![false; rank];
        for axis in axes {
            let position = resolve_axis(call, *axis, rank)?;
            if std::mem::replace(&mut chosen[position], true) {
                return Err(call.error(
                    ErrorKind::Index,
                    format!("axis {axis} is given twice"),
                    "list each axis once",
                ));
            }
        }
        Ok(chosen)
    }
}

/// Returns the position of an axis; negative ones count from the last.
pub(crate) fn resolve_axis(call: Call, axis: i64, rank: usize) -> Result<usize> {
    let position = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let position = position.and_then(|axis| usize::try_from(axis).ok());
    position.filter(|axis| *axis < rank).ok_or_else(|| {
        let help = match rank {
            0 => "a tensor of rank 0 has no axes".to_owned(),
            _ => format!("use an axis from {} to {}", -(rank as i64), rank - 1),
        };
        call.error(ErrorKind::Index, format!("axis {axis} is out of range for rank {rank}"), help)
    })
}

macro_rules! from_integers {
    ($($ty:ty),*) => {
        $(
            impl<const N: usize> From<[$ty; N]> for Dims {
                fn from(sizes: [$ty; N]) -> Self {
                    Self::from(&sizes[..])
                }
            }

            impl From<Vec<$ty>> for Dims {
                fn from(sizes: Vec<$ty>) -> Self {
                    Self::from(&sizes[..])
                }
            }

            impl From<&[$ty]> for Dims {
                // A size beyond `i64` is no size: it becomes one that no shape has.
                fn from(sizes: &[$ty]) -> Self {
                    let size = |size: &$ty| i64::try_from(*size).unwrap_or(i64::MAX);
                    Self(sizes.iter().map(size).collect())
                }
            }
        )*
    };
}

from_integers!(i32, i64, usize);

impl From<&Shape> for Dims {
    fn from(shape: &Shape) -> Self {
        Self::from(&**shape)
    }
}

impl From<()> for Dims {
    fn from((): ()) -> Self {
        Self(Vec::new())
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Self {
        Self(Some(vec![axis]))
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Self {
        i64::from(axis).into()
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Self {
        Self(Some(axes.to_vec()))
    }
}

impl<const N: usize> From<[i32; N]> for Axes {
    fn from(axes: [i32; N]) -> Self {
        axes.map(i64::from).into()
    }
}

impl From<Vec<i64>> for Axes {
    fn from(axes: Vec<i64>) -> Self {
        Self(Some(axes))
    }
}

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Self {
        Self(None)
    }
}
