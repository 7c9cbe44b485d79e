//! The sizes and strides that one launch iterates over.

use super::{Access, Classes, elements_per_word};
use crate::expr::Map;
use crate::shape::Layout;

/// Words that an invocation writes of large results.
const UNROLL: u32 = 4;

/// The fewest words of a large result: enough for several waves of invocations on a GPU.
pub(crate) const MIN_UNROLLED: u32 = 1 << 20;

/// The most steps of a map that is computed several times by an invocation.
const MAX_UNROLLED_STEPS: usize = 128;

/// The coordinates of a result, and where operands are read for each.
///
/// Positions are computed in 32 bits, wrapping: a negative stride is its two's complement. Since
/// the exact position of an element is in `0..2^32`, so is the wrapped one, and they are equal.
#[derive(Debug)]
pub(crate) struct Iteration {
    pub(crate) classes: Classes,
    /// Words of the result, each written by one invocation.
    pub(crate) words: u32,
    /// Words that an invocation writes.
    pub(crate) unroll: u32,
    sizes: Vec<u32>,
    operands: Vec<Layout>,
    has_opaque: bool,
}

/// The axis that an operand is gathered along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatherAxis {
    pub(crate) stride: i64,
    pub(crate) size: usize,
}

impl Iteration {
    /// Prepares `count` elements of a result, at most `u32::MAX`. All operands have its shape.
    pub(crate) fn new(map: &Map, count: u32, sizes: &[usize], operands: &[Layout]) -> Self {
        let words = count.div_ceil(elements_per_word(map.output));
        let (sizes, operands) = match map.needs_axes() {
            true => (sizes.to_vec(), operands.to_vec()),
            false => merge_axes(sizes, operands),
        };
        let access = |(position, layout): (usize, &Layout)| match map.is_gathered(position) {
            true => Access::Strided,
            false => access(layout, &sizes),
        };
        let classes: Vec<Access> = operands.iter().enumerate().map(access).collect();
        let needs_axes = map.needs_axes() || classes.contains(&Access::Strided);
        let rank = if needs_axes { sizes.len() as u32 } else { 0 };
        let classes = Classes { rank, operands: classes };
        // All operands have at most 2^32 elements, and so has each axis.
        let sizes = sizes.iter().map(|size| *size as u32).collect();
        let has_opaque = map.has_opaque();
        Self { classes, words, unroll: 1, sizes, operands, has_opaque }
    }

    /// Lets each invocation write several words, if there are many.
    pub(crate) fn unrolled(mut self, map: &Map) -> Self {
        let is_gathered = (0..map.operands.len()).any(|n| map.is_gathered(n));
        let is_large = (MIN_UNROLLED..1 << 31).contains(&self.words);
        if is_large && !is_gathered && map.scalars.len() <= MAX_UNROLLED_STEPS {
            self.unroll = UNROLL;
        }
        self
    }

    /// Returns the number of invocations.
    pub(crate) fn invocations(&self) -> u32 {
        self.words.div_ceil(self.unroll)
    }

    /// Returns the parameters of the kernel, in the order in which `kernel` reads them.
    pub(crate) fn parameters(&self, gathered: Option<GatherAxis>, arguments: &[u32]) -> Vec<u32> {
        let rank = self.classes.rank as usize;
        let mut parameters = vec![self.words];
        parameters.extend((self.unroll > 1).then(|| self.invocations()));
        parameters.extend(&self.sizes[..rank]);
        for (layout, access) in self.operands.iter().zip(&self.classes.operands) {
            parameters.push(layout.offset as u32);
            if *access == Access::Strided {
                parameters.extend(layout.strides.iter().map(|stride| *stride as u32));
            }
        }
        if let Some(axis) = gathered {
            parameters.extend([axis.stride as u32, axis.size as u32]);
        }
        parameters.extend(arguments);
        parameters.extend(self.has_opaque.then_some(0));
        parameters
    }
}

/// Calls `add` with each axis whose size is not 1, and whether one stride describes it together
/// with the axis before it in every operand. `stride` returns that of an operand along an axis.
pub(crate) fn for_each_axis(
    sizes: &[usize],
    operands: usize,
    stride: impl Fn(usize, usize) -> i64,
    mut add: impl FnMut(usize, bool),
) {
    let mut last: Option<usize> = None;
    for (axis, size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
        let continues =
            |last| (0..operands).all(|n| stride(n, last) == stride(n, axis) * *size as i64);
        add(axis, last.is_some_and(continues));
        last = Some(axis);
    }
}

/// Merges adjacent axes where one stride describes both in every operand, and drops axes of size 1.
pub(crate) fn merge_axes(sizes: &[usize], operands: &[Layout]) -> (Vec<usize>, Vec<Layout>) {
    let mut merged: Vec<usize> = Vec::new();
    let mut strides: Vec<Vec<i64>> = vec![Vec::new(); operands.len()];
    let stride = |n: usize, axis: usize| operands[n].strides[axis];
    for_each_axis(sizes, operands.len(), stride, |axis, merges| {
        match merged.last_mut().filter(|_| merges) {
            Some(last) => *last *= sizes[axis],
            None => merged.push(sizes[axis]),
        }
        for (layout, strides) in operands.iter().zip(&mut strides) {
            if merges {
                strides.pop();
            }
            strides.push(layout.strides[axis]);
        }
    });
    let with_strides = |(layout, strides): (&Layout, Vec<i64>)| Layout {
        shape: merged.clone().into(),
        strides,
        offset: layout.offset,
    };
    let layouts = operands.iter().zip(strides).map(with_strides).collect();
    (merged, layouts)
}

fn access(layout: &Layout, sizes: &[usize]) -> Access {
    let mut axes = layout.strides.iter().zip(sizes).filter(|(_, size)| **size != 1).peekable();
    // One element needs no kernel of its own: it is in row-major order.
    if axes.peek().is_some() && axes.all(|(stride, _)| *stride == 0) {
        Access::Uniform
    } else if layout.is_contiguous() {
        Access::Linear
    } else {
        Access::Strided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Expression;

    fn copy(dtype: DType) -> Map {
        let mut e = Expression::default();
        let x = e.operand(dtype);
        e.finish(x, dtype)
    }

    fn iterate(layout: &Layout) -> Iteration {
        let map = copy(DType::F16);
        let count = layout.shape.count().unwrap() as u32;
        Iteration::new(&map, count, &layout.shape, std::slice::from_ref(layout))
    }

    #[test]
    fn contiguous_operands_need_no_coordinates() {
        let iteration = iterate(&Layout::contiguous([3, 1, 5].into()));
        assert_eq!(iteration.classes, Classes { rank: 0, operands: vec![Access::Linear] });
        assert_eq!(iteration.words, 8);
        assert_eq!(iteration.parameters(None, &[7]), [8, 0, 7]);
    }

    #[test]
    fn repeated_element_is_uniform() {
        let iteration = iterate(&Layout::repeated([3, 5].into()));
        assert_eq!(iteration.classes.operands, [Access::Uniform]);
    }

    #[test]
    fn mergeable_axes_become_one() {
        let layout = Layout::contiguous([2, 3, 4, 5].into()).permute(&[2, 3, 0, 1]);
        let iteration = iterate(&layout);
        assert_eq!(iteration.classes, Classes { rank: 2, operands: vec![Access::Strided] });
        assert_eq!(iteration.parameters(None, &[]), [60, 20, 6, 0, 1, 20]);
    }

    #[test]
    fn negative_strides_wrap() {
        let reversed = Layout::contiguous([4].into()).slice(0, 3, -1, 4);
        assert_eq!(iterate(&reversed).parameters(None, &[]), [2, 4, 3, u32::MAX]);
    }
}
