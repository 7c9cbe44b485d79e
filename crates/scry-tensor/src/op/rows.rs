//! Operations of rows, which are along the last axis: softmax, norms, prefix sums, largest
//! elements.

use scry_gpu::{Binding, UntypedBuffer};
use scry_kernels::{Kernels, ScanKind};

use super::rule::{Bound, Number, Rule, count, rows_and_columns, typed};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::Shape;

/// A function of rows with the shape of the operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rows {
    Softmax,
    LogSoftmax,
    Cumsum,
}

impl Rule for Rows {
    fn name(&self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log_softmax",
            Self::Cumsum => "scan_rows",
        }
    }

    fn shape(&self, _: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        Ok(operands[0].clone())
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let (x, out) = (typed(&operands[0])?, result.view_as(operands[0].2.of_buffer())?);
        let [rows, columns] = rows_and_columns(&operands[0].1.shape);
        match self {
            Self::Softmax => library.softmax(&x, &out, rows, columns),
            Self::LogSoftmax => library.log_softmax(&x, &out, rows, columns),
            Self::Cumsum => library.scan_rows(ScanKind::Inclusive, &x, &out, rows, columns),
        }
    }

    fn flops(&self, operands: &[&Shape], _: &Shape) -> u64 {
        let per_element = if *self == Self::Cumsum { 1 } else { 4 };
        per_element * count(operands[0])
    }
}

/// How rows are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NormKind {
    /// To mean 0 and variance 1.
    Layer,
    /// To a mean square of 1.
    Rms,
    /// As `Layer`, of groups of coordinates of axis 1 with all axes after it.
    Group(usize),
}

/// A norm of rows. The operands after the first are a weight and a bias for each column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Norm {
    pub(crate) kind: NormKind,
    pub(crate) epsilon: Number,
}

impl Norm {
    /// Returns the numbers of rows and columns.
    fn matrix(&self, x: &Shape) -> [usize; 2] {
        match self.kind {
            NormKind::Group(groups) => {
                let rows = x[0] * groups;
                [rows, x.count().unwrap_or(0) / rows.max(1)]
            }
            _ => rows_and_columns(x),
        }
    }
}

impl Rule for Norm {
    fn name(&self) -> &'static str {
        if self.kind == NormKind::Rms { "rms_norm" } else { "layer_norm" }
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let x = operands[0];
        if let NormKind::Group(groups) = self.kind {
            let channels = x.get(1).copied().unwrap_or(0);
            if groups == 0 || !channels.is_multiple_of(groups) || x.rank() < 2 {
                let problem = format!("axis 1 of {x} is not {groups} groups of equal size");
                let help = "the number of groups must divide that of the channels";
                return Err(call.shape_error(&[x], problem, help));
            }
        }
        let columns = x.last().copied().unwrap_or(0);
        if let Some(other) = operands[1..].iter().find(|it| ***it != [columns]) {
            let problem =
                format!("{other} is not one element for each of the {columns} columns of {x}");
            let help = "pass weights and biases of the size of the last axis";
            return Err(call.shape_error(&[x, other], problem, help));
        }
        Ok(x.clone())
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let [rows, columns] = self.matrix(&operands[0].1.shape);
        let out = result.view_as(operands[0].2.of_buffer())?;
        let buffers: Vec<UntypedBuffer> = operands.iter().map(typed).collect::<Result<_, _>>()?;
        let other = |n: usize| buffers.get(n).map(|it| it as &dyn Binding);
        let (x, epsilon) = (&buffers[0], self.epsilon.get());
        match self.kind {
            NormKind::Rms => library.rms_norm(x, other(1), &out, rows, columns, epsilon),
            _ => library.layer_norm(x, other(1), other(2), &out, rows, columns, epsilon),
        }
    }

    fn flops(&self, operands: &[&Shape], _: &Shape) -> u64 {
        6 * count(operands[0])
    }
}

/// The positions of the `k` largest elements of each row, in descending order; of all elements if
/// `k` is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TopK {
    pub(crate) k: Option<usize>,
}

impl Rule for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let x = operands[0];
        let columns = x.last().copied().unwrap_or(1);
        let k = self.k.unwrap_or(columns);
        if k > columns {
            let problem = format!("there are no {k} elements along an axis of size {columns}");
            return Err(call.shape_error(&[x], problem, "use a smaller `k`"));
        }
        let first = x.len().saturating_sub(1);
        Ok([&x[..first], &[k]].concat().into())
    }

    fn dtype(&self, _: DType) -> DType {
        DType::U32
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let [rows, columns] = rows_and_columns(&operands[0].1.shape);
        let k = self.k.unwrap_or(columns);
        // The values are not needed: positions select them, together with other tensors.
        let values = library.device().alloc_untyped(operands[0].2.of_buffer(), rows * k)?;
        let indices = result.view_as(scry_gpu::DType::U32)?;
        library.top_k(&typed(&operands[0])?, &values, &indices, rows, columns, k)
    }
}
