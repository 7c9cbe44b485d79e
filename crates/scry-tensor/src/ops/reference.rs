//! Values on the host: operands and expected results of tests.

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// Elements on the host in row-major order. Integers up to 32 bits are exact; bools are 0 and 1.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Array {
    /// Builds elements from a function of coordinates.
    #[must_use]
    pub fn build(dtype: DType, shape: &[usize], mut of: impl FnMut(&[usize]) -> f64) -> Self {
        let count: usize = shape.iter().product();
        let mut at = vec![0; shape.len()];
        let mut values = Vec::with_capacity(count);
        for position in 0..count {
            let mut rest = position;
            for axis in (0..shape.len()).rev() {
                at[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            values.push(of(&at));
        }
        Self { dtype, shape: shape.to_vec(), values }
    }

    /// Returns the element at coordinates.
    #[must_use]
    pub fn at(&self, coordinates: &[usize]) -> f64 {
        let places = coordinates.iter().zip(&self.shape);
        self.values[places.fold(0, |sum, (at, size)| sum * size + at)]
    }

    /// Returns the elements with a function of each line along an axis, which may change its
    /// length.
    pub(super) fn along(&self, axis: usize, dtype: DType, f: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let mut shape = self.shape.clone();
        let outer: usize = shape[..axis].iter().product();
        let inner: usize = shape[axis + 1..].iter().product();
        let size = shape[axis];
        let mut lines = Vec::new();
        for n in 0..outer * inner {
            let (first, last) = (n / inner.max(1), n % inner.max(1));
            let line = (0..size).map(|at| self.values[(first * size + at) * inner + last]);
            lines.push(f(&line.collect::<Vec<_>>()));
        }
        shape[axis] = lines.first().map_or_else(|| f(&vec![0.0; size]).len(), Vec::len);
        Self::build(dtype, &shape, |at| {
            let first = at[..axis].iter().zip(&shape).fold(0, |sum, (at, size)| sum * size + at);
            let after = at[axis + 1..].iter().zip(&shape[axis + 1..]);
            lines[first * inner + after.fold(0, |sum, (at, size)| sum * size + at)][at[axis]]
        })
    }

    /// Returns the elements with another function of coordinates, of the same type.
    pub(super) fn like(&self, shape: &[usize], of: impl FnMut(&[usize]) -> f64) -> Self {
        Self::build(self.dtype, shape, of)
    }

    /// Returns the elements without an axis of size 1.
    pub(super) fn without(mut self, axis: usize) -> Self {
        self.shape.remove(axis);
        self
    }
}

/// A function of tensors.
type Function = dyn Fn(&[Tensor]) -> Result<Tensor>;

/// A call of an operation with its operands, and the expected result.
#[doc(hidden)]
pub struct Case {
    pub operands: Vec<Array>,
    pub call: Box<Function>,
    pub wanted: Array,
}

impl Case {
    pub(super) fn new(
        operands: Vec<Array>,
        wanted: Array,
        call: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
    ) -> Self {
        Self { operands, call: Box::new(call), wanted }
    }
}

/// A source of random cases (SplitMix64).
#[doc(hidden)]
pub struct Draw(pub u64);

impl Draw {
    /// Returns random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Returns a number from `least` to `most`.
    pub fn from_to(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Returns a shape with a number of axes in a range, rarely with one of size 0.
    pub(super) fn shape(&mut self, least: usize, most: usize) -> Vec<usize> {
        let rank = self.from_to(least, most);
        let lowest = usize::from(self.below(12) != 0);
        (0..rank).map(|_| self.from_to(lowest, 5)).collect()
    }

    /// Returns small numbers: eighths for floats, which few operations round.
    pub(super) fn numbers(&mut self, dtype: DType, shape: &[usize]) -> Array {
        Array::build(dtype, shape, |_| match dtype {
            DType::Bool => self.below(2) as f64,
            DType::U32 => self.below(19) as f64,
            DType::I32 => self.below(19) as f64 - 9.0,
            _ => (self.below(65) as f64 - 32.0) / 8.0,
        })
    }

    /// Returns indices below `size`; some are negative, and count from the end.
    pub(super) fn indices(&mut self, shape: &[usize], size: usize) -> Array {
        Array::build(DType::I32, shape, |_| {
            let at = self.below(size) as f64;
            if self.below(4) == 0 { at - size as f64 } else { at }
        })
    }
}
