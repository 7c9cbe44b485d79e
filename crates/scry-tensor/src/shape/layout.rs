//! Where the elements of a shape are stored: an offset and a stride per axis.

use super::Shape;

/// An affine map from coordinates to positions of elements: `offset + Σ coordinate * stride`.
///
/// Every position is that of an element of the storage, so it is neither negative nor above
/// `u32::MAX` where kernels compute it (see `lower`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// Elements from one coordinate to the next, per axis; negative in reversed views, 0 where one
    /// element is repeated.
    pub(crate) strides: Vec<i64>,
    /// The position of the element at coordinate 0.
    pub(crate) offset: i64,
}

impl Layout {
    /// Returns the layout of elements in row-major order.
    pub(crate) fn contiguous(shape: Shape) -> Self {
        let mut strides = vec![0; shape.len()];
        let mut stride: i64 = 1;
        for (axis, size) in shape.iter().enumerate().rev() {
            strides[axis] = stride;
            stride = stride.saturating_mul(*size as i64);
        }
        Self { shape, strides, offset: 0 }
    }

    /// Returns the layout of one element that is repeated.
    pub(crate) fn repeated(shape: Shape) -> Self {
        Self { strides: vec![0; shape.len()], shape, offset: 0 }
    }

    /// Returns whether the elements follow one another in row-major order, from any offset on.
    pub(crate) fn is_contiguous(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let mut expected = 1;
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *size > 1 && *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*size as i64);
        }
        true
    }

    /// Returns the layout with the axes in another order.
    pub(crate) fn permute(&self, axes: &[usize]) -> Self {
        let sizes: Vec<usize> = axes.iter().map(|axis| self.shape[*axis]).collect();
        let strides = axes.iter().map(|axis| self.strides[*axis]).collect();
        Self { shape: sizes.into(), strides, offset: self.offset }
    }

    /// Returns the layout of `len` coordinates of an axis, from `start` on in distances of `step`.
    /// If `len` is not 0, all of them must be in range.
    pub(crate) fn slice(&self, axis: usize, start: i64, step: i64, len: usize) -> Self {
        let mut sizes = self.shape.to_vec();
        let mut strides = self.strides.clone();
        sizes[axis] = len;
        let start = if len == 0 { 0 } else { start };
        let offset = self.offset + start * self.strides[axis];
        // A single coordinate has no next one, and its step may be anything.
        strides[axis] = if len <= 1 { 0 } else { self.strides[axis] * step };
        Self { shape: sizes.into(), strides, offset }
    }

    /// Returns the layout without an axis, which is at coordinate 0.
    pub(crate) fn without(&self, axis: usize) -> Self {
        let axes: Vec<usize> = (0..self.shape.len()).filter(|it| *it != axis).collect();
        self.permute(&axes)
    }

    /// Returns the layout with a new axis of size 1.
    pub(crate) fn with_axis(&self, axis: usize) -> Self {
        let mut sizes = self.shape.to_vec();
        let mut strides = self.strides.clone();
        sizes.insert(axis, 1);
        strides.insert(axis, 0);
        Self { shape: sizes.into(), strides, offset: self.offset }
    }

    /// Returns the layout broadcast to a shape; `None` if it does not broadcast to it.
    pub(crate) fn expand(&self, shape: &Shape) -> Option<Self> {
        let first = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; shape.len()];
        for (axis, size) in self.shape.iter().enumerate() {
            if *size == shape[first + axis] {
                strides[first + axis] = self.strides[axis];
            } else if *size != 1 {
                return None;
            }
        }
        Some(Self { shape: shape.clone(), strides, offset: self.offset })
    }

    /// Returns the layout of the same elements in the same row-major order with another shape;
    /// `None` if no strides describe it. The number of elements must be the same.
    pub(crate) fn reshape(&self, shape: &Shape) -> Option<Self> {
        if self.shape.contains(&0) {
            return Some(Self { offset: self.offset, ..Self::contiguous(shape.clone()) });
        }
        let mut strides = vec![0; shape.len()];
        let mut new = shape.len();
        // From the last axis on: groups of old axes that are one run, split into new axes.
        for (size, stride) in self.runs().into_iter().rev() {
            let (mut rest, mut stride) = (size, stride);
            while rest > 1 {
                new = new.checked_sub(1)?;
                if !rest.is_multiple_of(shape[new]) {
                    return None;
                }
                if shape[new] > 1 {
                    strides[new] = stride;
                }
                rest /= shape[new];
                stride *= shape[new] as i64;
            }
        }
        Some(Self { shape: shape.clone(), strides, offset: self.offset })
    }

    /// Returns sizes and strides with adjacent axes merged where one stride describes both, without
    /// axes of size 1.
    pub(crate) fn runs(&self) -> Vec<(usize, i64)> {
        let mut runs: Vec<(usize, i64)> = Vec::new();
        for (size, stride) in self.shape.iter().zip(&self.strides).filter(|(size, _)| **size != 1) {
            match runs.last_mut() {
                Some(last) if last.1 == stride * *size as i64 => {
                    *last = (last.0 * size, *stride);
                }
                _ => runs.push((*size, *stride)),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Layout {
        Layout::contiguous([2, 3, 4].into())
    }

    #[test]
    fn row_major_strides() {
        assert_eq!(rows().strides, [12, 4, 1]);
        assert!(rows().is_contiguous());
        assert!(!rows().permute(&[1, 0, 2]).is_contiguous());
        assert!(rows().slice(0, 1, 1, 1).is_contiguous());
        assert!(rows().slice(1, 0, 1, 0).permute(&[2, 1, 0]).is_contiguous());
    }

    #[test]
    fn reshape_without_copy() {
        let reshaped = rows().reshape(&[6, 2, 2].into()).unwrap();
        assert_eq!(reshaped.strides, [4, 2, 1]);
        assert_eq!(rows().permute(&[2, 0, 1]).reshape(&[4, 6].into()).unwrap().strides, [1, 4]);
        assert_eq!(rows().permute(&[0, 2, 1]).reshape(&[8, 3].into()), None);
        let column = rows().slice(2, 1, 1, 1);
        assert_eq!(column.reshape(&[6].into()).unwrap().strides, [4]);
        assert_eq!(column.reshape(&[1, 6, 1].into()).unwrap().strides, [0, 4, 0]);
        let empty = rows().slice(0, 0, 1, 0);
        assert_eq!(empty.reshape(&[5, 0].into()).unwrap().shape, [5, 0]);
    }

    #[test]
    fn reversed_axis_starts_at_end() {
        let reversed = rows().slice(2, 3, -1, 4);
        assert_eq!((reversed.offset, reversed.strides[2]), (3, -1));
        assert_eq!(reversed.reshape(&[24].into()), None);
    }

    #[test]
    fn expanded_axes_repeat() {
        let expanded = Layout::contiguous([3, 1].into()).expand(&[2, 3, 5].into()).unwrap();
        assert_eq!(expanded.strides, [0, 1, 0]);
        assert_eq!(rows().expand(&[3, 4].into()), None);
        assert_eq!(expanded.reshape(&[2, 15].into()), None);
        assert!(Layout::contiguous(().into()).expand(&[7].into()).is_some());
    }
}
