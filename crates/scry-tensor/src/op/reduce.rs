//! Reductions over axes, as data.

use scry_gpu::UntypedBuffer;
use scry_kernels::{Kernels, Reduction};

use super::rule::{Bound, Rule, Trivial, typed};
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

impl Rule for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }

    fn shape(&self, call: Call, dtype: DType, operands: &[&Shape]) -> Result<Shape> {
        let x = operands[0];
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

    fn dtype(&self, first: DType) -> DType {
        match self.reduction {
            Reduction::ArgMin | Reduction::ArgMax => DType::U32,
            _ => first,
        }
    }

    fn trivial(&self, dtype: DType, operands: &[&Shape], _: &Shape) -> Option<Trivial> {
        use Reduction::{Max, Mean, Min, Product, Sum};
        if self.matrix(operands[0])[1].contains(&0) {
            return Some(Trivial::Fill(self.of_nothing.unwrap_or(0)));
        }
        let is_identity = !self.axes.contains(&true)
            && matches!(self.reduction, Sum | Product | Min | Max | Mean)
            && !dtype.is_quantized();
        is_identity.then_some(Trivial::Same)
    }

    /// Returns the view of the operand with the reduced axes last.
    fn view(&self, _: usize, _: &[&Shape]) -> Vec<View> {
        let axes = |is_reduced| (0..self.axes.len()).filter(move |it| self.axes[*it] == is_reduced);
        let is_ordered = self.axes.is_sorted();
        let view = (!is_ordered).then(|| View::Permute(axes(false).chain(axes(true)).collect()));
        view.into_iter().collect()
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let (_, layout, dtype) = operands[0];
        let columns = self.axes.iter().filter(|axis| **axis).count();
        let sizes = layout.shape.split_at(layout.shape.rank() - columns);
        let [rows, columns] = [sizes.0, sizes.1].map(|sizes| sizes.iter().product());
        let out = result.view_as(self.dtype(dtype).of_buffer())?;
        library.reduce_rows(self.reduction, &typed(&operands[0])?, &out, rows, columns)
    }
}

impl Reduce {
    /// Returns the sizes of the rows' axes, and those of the axes that are reduced.
    fn matrix(&self, x: &Shape) -> [Shape; 2] {
        [false, true].map(|is_reduced| {
            let sizes = x.iter().zip(&self.axes).filter(|(_, axis)| **axis == is_reduced);
            sizes.map(|(size, _)| *size).collect::<Vec<_>>().into()
        })
    }
}
