//! Reductions over axes, as data.

use scry_kernels::Reduction;

use super::view::View;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::{Shape, check_count};

/// A reduction over axes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reduce {
    pub(crate) reduction: Reduction,
    /// For each axis whether it is reduced.
    pub(crate) axes: Vec<bool>,
    /// Whether reduced axes remain, with size 1.
    pub(crate) keepdim: bool,
    /// The bits of the result for no elements; `None` if there is none.
    pub(crate) of_nothing: Option<u32>,
}

impl Reduce {
    pub(super) fn shape(&self, call: Call, dtype: DType, x: &Shape) -> Result<Shape> {
        let [rows, columns] = self.matrix(x);
        check_count(call, &rows, dtype)?;
        let columns = check_count(call, &columns, dtype)?;
        let sizes = x.iter().zip(&self.axes);
        let result: Shape = match self.keepdim {
            false => rows,
            true => {
                sizes.map(|(size, axis)| if *axis { 1 } else { *size }).collect::<Vec<_>>().into()
            }
        };
        if columns == 0 && self.of_nothing.is_none() && !result.contains(&0) {
            return Err(call.shape_error(
                &[x],
                format!("{x} has no elements along the axes, so there is no result"),
                "check the sizes first",
            ));
        }
        Ok(result)
    }

    /// Returns the sizes of the rows' axes, and those of the axes that are reduced.
    pub(super) fn matrix(&self, x: &Shape) -> [Shape; 2] {
        [false, true].map(|is_reduced| {
            let sizes = x.iter().zip(&self.axes).filter(|(_, axis)| **axis == is_reduced);
            sizes.map(|(size, _)| *size).collect::<Vec<_>>().into()
        })
    }

    /// Returns the view of the operand with the reduced axes last; `None` if they are.
    pub(super) fn view(&self) -> Option<View> {
        let axes = |is_reduced| (0..self.axes.len()).filter(move |it| self.axes[*it] == is_reduced);
        let is_ordered = self.axes.is_sorted();
        (!is_ordered).then(|| View::Permute(axes(false).chain(axes(true)).collect()))
    }

    /// Returns whether no axis is reduced.
    pub(super) fn is_identity(&self) -> bool {
        !self.axes.contains(&true)
    }
}
