//! Shapes, broadcasting, and how the elements of a shape are laid out in memory.

mod broadcast;
mod checks;
mod layout;
mod requests;

use std::fmt;
use std::ops::Deref;

pub(crate) use broadcast::broadcast;
pub(crate) use checks::{check_count, check_view, rank_error};
pub(crate) use layout::Layout;
pub(crate) use requests::resolve_axis;
pub use requests::{Axes, Dims};

/// The largest number of axes.
pub(crate) const MAX_RANK: usize = 16;

/// Returns the coordinates of a position in row-major order.
pub(crate) fn coordinates(mut position: usize, shape: &Shape) -> Vec<usize> {
    let mut at = vec![0; shape.rank()];
    for (axis, size) in shape.iter().enumerate().rev() {
        at[axis] = position % size;
        position /= size;
    }
    at
}

/// The sizes of a tensor along its axes. It dereferences to a slice.
///
/// ```
/// use scry_tensor::Shape;
///
/// let shape = Shape::from([2, 3]);
/// assert_eq!((shape.rank(), shape.len(), shape[1]), (2, 2, 3));
/// assert_eq!(shape.to_string(), "[2, 3]");
/// assert_eq!(Shape::from(()).count(), Some(1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// Returns the number of axes.
    ///
    /// ```
    /// assert_eq!(scry_tensor::Shape::from([4, 1, 2]).rank(), 3);
    /// ```
    #[must_use]
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of elements; `None` if it exceeds `usize`.
    ///
    /// ```
    /// use scry_tensor::Shape;
    ///
    /// assert_eq!(Shape::from([4, 0]).count(), Some(0));
    /// assert_eq!(Shape::from([usize::MAX, 2]).count(), None);
    /// ```
    #[must_use]
    pub fn count(&self) -> Option<usize> {
        if self.0.contains(&0) {
            return Some(0);
        }
        self.0.iter().try_fold(1usize, |count, size| count.checked_mul(*size))
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<()> for Shape {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(sizes: [usize; N]) -> Self {
        Self(sizes.to_vec())
    }
}

impl From<&[usize]> for Shape {
    fn from(sizes: &[usize]) -> Self {
        Self(sizes.to_vec())
    }
}

impl From<Vec<usize>> for Shape {
    fn from(sizes: Vec<usize>) -> Self {
        Self(sizes)
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.0 == other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.0 == other
    }
}
