//! Elements selected by indices, along one axis.

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::expr::{Expression, Map};
use crate::lower::GatherAxis;
use crate::shape::{Layout, MAX_RANK, Shape, rank_error};

/// Which elements are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    pub(crate) axis: usize,
    /// Whether indices have the axes of the elements, and each selects one element at its own
    /// coordinates of the other axes. Otherwise the axes of the indices replace the axis, and each
    /// selects a coordinate.
    pub(crate) is_along: bool,
}

/// The layouts of a selection, all with the shape of the result.
pub(crate) struct Gathered {
    pub(crate) indices: Layout,
    /// The elements at index 0.
    pub(crate) elements: Layout,
    pub(crate) axis: GatherAxis,
}

impl Gathered {
    pub(crate) fn new(
        Selection { axis, is_along }: Selection,
        elements: &Layout,
        indices: &Layout,
        shape: &Shape,
    ) -> Self {
        let gathered = GatherAxis { stride: elements.strides[axis], size: elements.shape[axis] };
        if is_along {
            let mut strides = elements.strides.clone();
            strides[axis] = 0;
            let elements = Layout { shape: shape.clone(), strides, offset: elements.offset };
            return Self { indices: indices.clone(), elements, axis: gathered };
        }
        let added = indices.shape.rank();
        let after = elements.shape.len() - axis - 1;
        let (first, last) = (&elements.strides[..axis], &elements.strides[axis + 1..]);
        let own = [first, &vec![0; added], last].concat();
        let other = [&vec![0; axis][..], &indices.strides, &vec![0; after]].concat();
        let layout = |offset, strides| Layout { shape: shape.clone(), strides, offset };
        Self {
            indices: layout(indices.offset, other),
            elements: layout(elements.offset, own),
            axis: gathered,
        }
    }

    /// Returns the map of a selection; its operands are the indices and the elements.
    pub(crate) fn map(indices: DType, elements: DType) -> Map {
        let mut e = Expression::default();
        let index = e.operand(indices);
        let element = e.gathered(elements, index);
        e.finish(element, elements)
    }
}

impl Selection {
    pub(super) fn shape(self, call: Call, elements: &Shape, indices: &Shape) -> Result<Shape> {
        let Self { axis, is_along } = self;
        if elements[axis] > u32::MAX as usize {
            let problem = format!("axis {axis} of {elements} is too large for 32-bit indices");
            return Err(call.error(ErrorKind::TooLarge, problem, "select a range of it first"));
        }
        if is_along {
            let is_within = |n: usize| n == axis || indices[n] <= elements[n];
            if elements.rank() == indices.rank() && (0..elements.rank()).all(is_within) {
                return Ok(indices.clone());
            }
            let problem = format!("indices of {indices} do not fit elements of {elements}");
            let help = "indices must have the rank of the tensor, and no larger size except along \
                        the axis";
            return Err(call.shape_error(&[elements, indices], problem, help));
        }
        let shape = Shape::from([&elements[..axis], indices, &elements[axis + 1..]].concat());
        if shape.len() > MAX_RANK {
            return Err(rank_error(call, &shape));
        }
        Ok(shape)
    }
}
