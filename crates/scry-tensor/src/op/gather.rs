//! Elements selected by indices, along one axis.

use crate::dtype::DType;
use crate::error::{Call, ErrorKind, Result};
use crate::expr::{Expression, Map};
use crate::lower::GatherAxis;
use crate::shape::{Layout, MAX_RANK, Shape, rank_error};

/// The layouts of a selection, all with the shape of the result.
pub(crate) struct Gathered {
    pub(crate) indices: Layout,
    /// The elements at index 0.
    pub(crate) elements: Layout,
    pub(crate) axis: GatherAxis,
}

impl Gathered {
    pub(crate) fn new(axis: usize, elements: &Layout, indices: &Layout, shape: &Shape) -> Self {
        let added = indices.shape.rank();
        let after = elements.shape.len() - axis - 1;
        let (first, last) = (&elements.strides[..axis], &elements.strides[axis + 1..]);
        let own = [first, &vec![0; added], last].concat();
        let other = [&vec![0; axis][..], &indices.strides, &vec![0; after]].concat();
        let layout = |offset, strides| Layout { shape: shape.clone(), strides, offset };
        Self {
            indices: layout(indices.offset, other),
            elements: layout(elements.offset, own),
            axis: GatherAxis { stride: elements.strides[axis], size: elements.shape[axis] },
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

/// Returns the shape of the elements with an axis replaced by those of the indices.
pub(super) fn shape(call: Call, axis: usize, elements: &Shape, indices: &Shape) -> Result<Shape> {
    if elements[axis] > u32::MAX as usize {
        let problem = format!("axis {axis} of {elements} is too large for 32-bit indices");
        return Err(call.error(ErrorKind::TooLarge, problem, "select a range of it first"));
    }
    let shape = Shape::from([&elements[..axis], indices, &elements[axis + 1..]].concat());
    if shape.len() > MAX_RANK {
        return Err(rank_error(call, &shape));
    }
    Ok(shape)
}
