//! Quantised weights: as floats, and products with them.

use scry_gpu::UntypedBuffer;
use scry_kernels::{BlockFormat, Kernels};

use super::gather::Selection;
use super::rule::{Bound, Rule, Trivial, count, rows_and_columns, typed};
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::shape::Shape;

/// Quantised weights as floats of a type.
pub(super) struct Dequantise(pub(super) DType);

impl Rule for Dequantise {
    fn name(&self) -> &'static str {
        "dequantize"
    }

    fn shape(&self, _: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        Ok(operands[0].clone())
    }

    fn dtype(&self, _: DType) -> DType {
        self.0
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let (buffer, layout, dtype) = operands[0];
        let blocks = buffer.view_as(scry_gpu::DType::U8)?;
        let out = result.view_as(self.0.of_buffer())?;
        let count = layout.shape.count().unwrap_or(0);
        library.dequantize(format(dtype), &blocks, &out, count)
    }
}

/// Rows of quantised weights `[n, …]` that indices of any shape, of `u32`, select, as `f32`.
pub(super) struct QuantizedRows;

impl Rule for QuantizedRows {
    fn name(&self) -> &'static str {
        "dequantize_rows"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        Selection { axis: 0, is_along: false }.shape(call, operands[0], operands[1])
    }

    fn dtype(&self, _: DType) -> DType {
        DType::F32
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let [(table, layout, dtype), indices] = [operands[0], operands[1]];
        let blocks = table.view_as(scry_gpu::DType::U8)?;
        let out = result.view_as(scry_gpu::DType::F32)?;
        let columns = layout.shape[1..].iter().product();
        let count = indices.1.shape.count().unwrap_or(0);
        let (format, sizes) = (format(dtype), [layout.shape[0], columns]);
        library.dequantize_rows(format, &blocks, &typed(&indices)?, &out, sizes, count)
    }

    fn flops(&self, _: &[&Shape], result: &Shape) -> u64 {
        count(result)
    }
}

fn format(dtype: DType) -> BlockFormat {
    dtype.block_format().unwrap_or(BlockFormat::Q8_0)
}

/// The product of activations `[…, k]` and quantised weights `[n, k]`: `[…, n]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct QuantizedProduct {
    /// Whether the result is `f32`, also if the activations have 16 bits.
    pub(crate) is_wide: bool,
    /// Whether activations are pairs, of a gate and of others, which become `silu(gate) * other`
    /// first: rows have `k` of each. Only the pass `prologues` of a graph makes such a product.
    pub(crate) is_gated: bool,
}

impl Rule for QuantizedProduct {
    fn name(&self) -> &'static str {
        if self.is_gated { "quantized_matmul_swiglu" } else { "quantized_matmul" }
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let ([batch @ .., k], [n, weights_k]) = (&**operands[0], &**operands[1]) else {
            let problem = format!("{} and {} do not multiply", operands[0], operands[1]);
            let help = "weights are a matrix with a row for each output";
            return Err(call.shape_error(&[operands[0], operands[1]], problem, help));
        };
        if *k != self.inputs() * weights_k {
            let problem =
                format!("{} has rows of {k}, weights {} of {weights_k}", operands[0], operands[1]);
            let help = "weights have a row for each output, as long as the rows of the tensor";
            return Err(call.shape_error(&[operands[0], operands[1]], problem, help));
        }
        Ok([batch, &[*n]].concat().into())
    }

    fn dtype(&self, first: DType) -> DType {
        if self.is_wide { DType::F32 } else { first }
    }

    fn trivial(&self, _: DType, operands: &[&Shape], result: &Shape) -> Option<Trivial> {
        (operands[0].contains(&0) && !result.contains(&0)).then_some(Trivial::Fill(0))
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let [x, weights] = [operands[0], operands[1]];
        let columns = rows_and_columns(&x.1.shape)[0];
        let blocks = weights.0.view_as(scry_gpu::DType::U8)?;
        let out = result.view_as(self.dtype(x.2).of_buffer())?;
        let sizes = [weights.1.shape[0], weights.1.shape[1]];
        let (format, x) = (format(weights.2), typed(&x)?);
        match self.is_gated {
            true => library.quantized_matmul_swiglu(format, &blocks, &x, &out, sizes, columns),
            false => library.quantized_matmul(format, &blocks, &x, &out, sizes, columns),
        }
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        2 * count(result) * operands[1].last().copied().unwrap_or(1) as u64
    }
}

impl QuantizedProduct {
    /// Returns how many elements become an activation.
    pub(crate) fn inputs(&self) -> usize {
        if self.is_gated { 2 } else { 1 }
    }
}
