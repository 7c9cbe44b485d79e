//! Products of matrices: shapes, and the layouts that the kernel library reads.

use scry_gpu::UntypedBuffer;
use scry_kernels::{
    Activation, Epilogue, Gemm, Kernels, Layout as MatrixOrder, MatrixLayout, PtxType,
};

use super::rule::{Bound, Number, Rule, Trivial, count};
use super::view::View;
use crate::dtype::DType;
use crate::error::{Call, Error, ErrorKind, Result};
use crate::shape::{Layout, Shape, broadcast};

/// A product of matrices, or of stacks of them.
pub(super) struct Matmul;

impl Rule for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        shape(call, operands[0], operands[1])
    }

    /// The kernel library computes products without columns.
    fn trivial(&self, _: DType, _: &[&Shape], _: &Shape) -> Option<Trivial> {
        None
    }

    fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        views(operand, shapes)
    }

    fn accepts(&self, _: usize, layout: &Layout, dtype: DType, alignment: u64) -> bool {
        accepts(layout, dtype, alignment)
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        product(library, operands, result)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        2 * count(result) * operands[0].last().copied().unwrap_or(1) as u64
    }
}

/// A product with an epilogue of the kernel library: `activation(factor * product + bias +
/// residual)`. Its operands have the views of the product's; after them are the bias, of one
/// element for each column, and the residual, of the result's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FusedProduct {
    pub(crate) factor: Number,
    pub(crate) has_bias: bool,
    /// The residual is in the memory of the result before the operation.
    pub(crate) has_residual: bool,
    pub(crate) activation: Activation,
}

impl FusedProduct {
    /// Returns whether the kernel library computes the product, of operands with the views of the
    /// product, by the same variant as without the epilogue.
    pub(crate) fn keeps_variant(
        &self,
        library: &Kernels,
        operands: [&Layout; 2],
        dtype: DType,
    ) -> bool {
        let Some(gemm) = gemm(operands, dtype) else { return true };
        let fused = Gemm { epilogue: self.epilogue(), ..gemm };
        let variant = |gemm| library.explain_gemm(gemm).ok().map(|it| it.variant());
        variant(&fused) == variant(&gemm)
    }

    /// Returns the product in the kernel library's terms.
    pub(super) fn gemm(&self, operands: [&Layout; 2], dtype: DType) -> Option<Gemm> {
        Some(Gemm { epilogue: self.epilogue(), ..gemm(operands, dtype)? })
    }

    /// Returns the epilogue in the kernel library's terms.
    fn epilogue(&self) -> Epilogue {
        Epilogue {
            alpha: self.factor.get(),
            beta: if self.has_residual { 1.0 } else { 0.0 },
            bias: self.has_bias,
            activation: self.activation,
        }
    }

    /// Returns the position of the residual among the operands.
    pub(crate) fn residual(&self) -> Option<usize> {
        self.has_residual.then_some(2 + usize::from(self.has_bias))
    }
}

impl Rule for FusedProduct {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        shape(call, operands[0], operands[1])
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let [(a, layout, dtype), (b, other, _)] = [operands[0], operands[1]];
        let mut product = Product::new(layout, other, dtype);
        product.gemm.iter_mut().for_each(|gemm| gemm.epilogue = self.epilogue());
        let bias = self.has_bias.then(|| (operands[2].0, operands[2].1.offset as usize));
        product.prepare(library, [a, b], bias, result)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        Matmul.flops(operands, result) + count(result)
    }
}

/// Prepares the product of `[batch, rows, columns]` and `[batch, columns, others]`.
pub(super) fn product(
    library: &Kernels,
    operands: &[Bound<'_>],
    result: &UntypedBuffer,
) -> scry_gpu::Result<scry_kernels::Op> {
    let [(first, layout, dtype), (second, other, _)] = [operands[0], operands[1]];
    Product::new(layout, other, dtype).prepare(library, [first, second], None, result)
}

/// Returns the product without epilogue in the kernel library's terms; `None` for layouts that it
/// does not read.
pub(super) fn gemm([a, b]: [&Layout; 2], dtype: DType) -> Option<Gemm> {
    Product::new(a, b, dtype).gemm
}

/// Returns the shape of a product of stacks of matrices, whose other axes are broadcast.
fn shape(call: Call, a: &Shape, b: &Shape) -> Result<Shape> {
    let ([a_batch @ .., m, k], [b_batch @ .., b_k, n]) = (&**a, &**b) else {
        return Err(not_matrices(call, if a.rank() < 2 { a } else { b }));
    };
    if k != b_k {
        return Err(call.shape_error(
            &[a, b],
            format!("the matrices do not multiply: {k} columns of {a}, {b_k} rows of {b}"),
            "the last size of the first must be the last but one of the second: transpose one \
             of them with `t`",
        ));
    }
    let batch = broadcast(call, &[a_batch, b_batch])?;
    Ok([&batch, &[*m, *n][..]].concat().into())
}

/// Returns the views of an operand as `[batch, rows, columns]`.
fn views(operand: usize, shapes: &[&Shape]) -> Vec<View> {
    let batch = |shape: &Shape| shape[..shape.rank() - 2].to_vec();
    let rank = shapes[0].rank().max(shapes[1].rank());
    let size = |axis: usize| {
        let of = |shape: &Shape| {
            (axis + shape.rank()).checked_sub(rank).map_or(1, |axis| batch(shape)[axis])
        };
        let (a, b) = (of(shapes[0]), of(shapes[1]));
        if a == 1 { b } else { a }
    };
    let common: Vec<usize> = (0..rank - 2).map(size).collect();
    let own = shapes[operand];
    let matrix = &own[own.rank() - 2..];
    let expanded = Shape::from([&common, matrix].concat());
    let flat = Shape::from([common.iter().product::<usize>(), matrix[0], matrix[1]]);
    let mut views = Vec::new();
    if expanded != **own {
        views.push(View::Expand(expanded.clone()));
    }
    if flat != *expanded {
        views.push(View::Reshape((&flat).into()));
    }
    views
}

/// Returns whether the kernel library reads matrices of this layout, `[batch, rows, columns]`.
pub(super) fn accepts(layout: &Layout, dtype: DType, alignment: u64) -> bool {
    let start = layout.offset as u64 * dtype.size() as u64;
    start.is_multiple_of(alignment.max(16)) && matrix(layout).is_some()
}

/// Returns the layout in the kernel library's terms; `None` if it has gaps in both directions.
fn matrix(layout: &Layout) -> Option<MatrixLayout> {
    let [batch, rows, columns] = layout.shape[..] else { return None };
    let [stride, row, column] = layout.strides[..] else { return None };
    if layout.shape.contains(&0) {
        return Some(MatrixLayout::packed(MatrixOrder::RowMajor, rows as u64, columns as u64));
    }
    let stride = u64::try_from(if batch == 1 { 0 } else { stride }).ok()?;
    // The stride of a single row or column may be anything.
    let order = |line: i64, within: i64, lines: usize, len: usize| {
        let ld = if lines == 1 { len as i64 } else { line };
        ((within == 1 || len == 1) && ld >= len as i64).then_some(ld as u64)
    };
    if let Some(ld) = order(row, column, rows, columns) {
        return Some(MatrixLayout { order: MatrixOrder::RowMajor, ld, stride });
    }
    let ld = order(column, row, columns, rows)?;
    Some(MatrixLayout { order: MatrixOrder::ColMajor, ld, stride })
}

/// A product with layouts that the kernel library reads.
struct Product {
    gemm: Option<Gemm>,
    dtype: DType,
    starts: [usize; 2],
}

impl Product {
    fn new(a: &Layout, b: &Layout, dtype: DType) -> Self {
        let element = match dtype {
            DType::F16 => PtxType::F16,
            DType::BF16 => PtxType::Bf16,
            _ => PtxType::F32,
        };
        let size = |layout: &Layout, axis: usize| layout.shape[axis] as u64;
        let gemm = matrix(a).zip(matrix(b)).map(|(first, second)| {
            let mut gemm = Gemm::new(size(a, 1), size(b, 2), size(a, 2), element);
            gemm.batch = size(a, 0);
            (gemm.a, gemm.b) = (first, second);
            gemm
        });
        Self { gemm, dtype, starts: [a, b].map(|layout| layout.offset as usize) }
    }

    fn prepare(
        self,
        library: &Kernels,
        operands: [&UntypedBuffer; 2],
        bias: Option<(&UntypedBuffer, usize)>,
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let dtype = self.dtype.of_buffer();
        let part = |buffer: &UntypedBuffer, start: usize| {
            let count = buffer.byte_size() as usize / self.dtype.size();
            buffer.view_as(dtype)?.slice(start.min(count)..)
        };
        let (a, b) = (part(operands[0], self.starts[0])?, part(operands[1], self.starts[1])?);
        let out = result.view_as(dtype)?;
        let gemm = self.gemm.unwrap_or(Gemm::new(0, 0, 0, PtxType::F32));
        match bias {
            Some((bias, start)) => library.gemm(&gemm, &[&a, &b, &part(bias, start)?, &out]),
            None => library.gemm(&gemm, &[&a, &b, &out]),
        }
    }
}

/// Returns the error for a shape that is not one of matrices.
fn not_matrices(call: Call, shape: &Shape) -> Error {
    let problem = format!("{shape} is not the shape of a matrix");
    call.error(ErrorKind::Shape, problem, "insert an axis with `unsqueeze`")
}
