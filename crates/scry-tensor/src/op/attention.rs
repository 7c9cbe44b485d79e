//! Operations of attention heads.

use scry_gpu::{Binding, UntypedBuffer};
use scry_kernels::{Attention, AttentionBias, Kernels, PtxType, Rope, Strides};

use super::rule::{Bound, Number, Rule, Trivial, count, typed};
use super::view::View;
use crate::dtype::DType;
use crate::error::{Call, Error, Result};
use crate::shape::{Layout, Shape};

/// Attention of queries `[batch, heads, queries, head_dim]`, keys and values
/// `[batch, kv_heads, keys, head_dim]`, and a bias `[batch, heads, queries, keys]`, if there is a
/// fourth operand. The result is `[batch, queries, heads, head_dim]`: most programs join the heads
/// of a query next, which then needs no copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Attend {
    pub(crate) is_causal: bool,
    /// The scale of the scores; `None` for `1 / sqrt(head_dim)`.
    pub(crate) scale: Option<Number>,
}

impl Attend {
    fn error(&self, call: Call, operands: &[&Shape]) -> Option<Error> {
        let (q, k, v) = (operands[0], operands[1], operands[2]);
        let error = |problem: String, help| Some(call.shape_error(&[q, k, v], problem, help));
        if let Some(other) = [q, k, v].into_iter().find(|it| it.rank() != 4) {
            let help = "use [batch, heads, seq_len, head_dim]";
            return error(format!("{other} is not the shape of heads"), help);
        }
        let fits = k == v && q[0] == k[0] && q[3] == k[3];
        if !fits || k[1] == 0 || !q[1].is_multiple_of(k[1]) {
            let problem = format!("queries {q}, keys {k} and values {v} do not match");
            return error(
                problem,
                "keys and values must have the same shape, batch and head_dim those of the \
                 queries, and kv_heads must divide heads",
            );
        }
        if !(1..=256).contains(&q[3]) {
            return error(format!("head_dim is {}", q[3]), "use 1 to 256");
        }
        let scores = Shape::from([q[0], q[1], q[2], k[2]]);
        let bias = operands.get(3)?;
        let fits = Layout::contiguous((*bias).clone()).expand(&scores).is_some();
        let problem = || format!("a bias of {bias} does not expand to the scores, {scores}");
        if fits {
            None
        } else {
            error(problem(), "use [batch, heads, queries, keys]; sizes may be 1")
        }
    }
}

impl Rule for Attend {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        match self.error(call, operands) {
            Some(error) => Err(error),
            None => {
                let [batch, heads, queries, columns] = four(operands[0]);
                Ok(Shape::from([batch, queries, heads, columns]))
            }
        }
    }

    /// Without keys, results are 0.
    fn trivial(&self, _: DType, operands: &[&Shape], result: &Shape) -> Option<Trivial> {
        (operands[1].contains(&0) && !result.contains(&0)).then_some(Trivial::Fill(0))
    }

    /// Queries, keys and values are read with gaps between heads and rows, such as those of other
    /// heads, and of positions after the keys.
    fn accepts(&self, operand: usize, layout: &Layout, dtype: DType, alignment: u64) -> bool {
        if layout.is_contiguous() && layout.offset == 0 {
            return true;
        }
        operand < 3 && is_strided(layout, dtype, alignment)
    }

    /// A bias has all four axes, which may have size 1.
    fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        let missing = if operand == 3 { 4 - shapes[3].rank() } else { 0 };
        (0..missing).map(|_| View::Unsqueeze(0)).collect()
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let element = |dtype| match dtype {
            DType::F16 => PtxType::F16,
            DType::BF16 => PtxType::Bf16,
            _ => PtxType::F32,
        };
        let (q, k) = (operands[0].1.shape.to_vec(), operands[1].1.shape.to_vec());
        // Sizes beyond 32 bits are beyond those of tensors: `check_count`.
        let [batch, heads, queries, columns] = [q[0], q[1], q[2], q[3]].map(|size| size as u32);
        let dtype = element(operands[0].2);
        let attention = Attention::new([batch, heads], queries, k[2] as u32, columns, dtype);
        let mut attention = attention.grouped(k[1] as u32);
        attention.causal = self.is_causal;
        let all = [&mut attention.q, &mut attention.k, &mut attention.v];
        for (strides, (_, layout, _)) in all.into_iter().zip(operands) {
            *strides = strides_of(layout);
        }
        let row = u64::from(heads) * u64::from(columns);
        attention.out = Strides { batch: u64::from(queries) * row, head: columns.into(), row };
        if let Some(scale) = self.scale {
            attention.scale = scale.get();
        }
        if let Some((_, layout, dtype)) = operands.get(3) {
            let stride = |axis: usize| match layout.shape[axis] {
                1 => 0,
                _ => layout.shape[axis + 1..].iter().product::<usize>() as u64,
            };
            let strides = Strides { batch: stride(0), head: stride(1), row: stride(2) };
            let column_stride = stride(3) as u32;
            attention.bias =
                Some(AttentionBias { element: element(*dtype), strides, column_stride });
        }
        let out = result.view_as(operands[0].2.of_buffer())?;
        let from_offset = |bound: &Bound<'_>| -> scry_gpu::Result<UntypedBuffer> {
            match bound.1.offset {
                0 => typed(bound),
                offset => typed(bound)?.slice(offset as usize..),
            }
        };
        let buffers: Vec<UntypedBuffer> =
            operands.iter().map(from_offset).collect::<Result<_, _>>()?;
        let mut bindings: Vec<&dyn Binding> = buffers.iter().map(|it| it as _).collect();
        bindings.push(&out);
        library.attention(&attention, &bindings)
    }

    fn flops(&self, operands: &[&Shape], result: &Shape) -> u64 {
        4 * count(result) * operands[1].get(2).copied().unwrap_or(1) as u64
    }
}

/// Returns the sizes of four axes.
fn four(shape: &Shape) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

/// Returns whether the rows of heads have contiguous columns, and start at multiples of 16 bytes,
/// as the fastest kernels need them.
fn is_strided(layout: &Layout, dtype: DType, alignment: u64) -> bool {
    let size = dtype.size() as u64;
    let ([shape @ .., columns], [strides @ .., column]) = (&layout.shape[..], &layout.strides[..])
    else {
        return false;
    };
    let is_aligned = |(size_of_axis, stride): (&usize, &i64)| {
        let bytes = u64::try_from(*stride).map(|stride| stride.saturating_mul(size));
        *size_of_axis == 1 || bytes.is_ok_and(|bytes| bytes > 0 && bytes.is_multiple_of(16))
    };
    let start = layout.offset as u64 * size;
    (*column == 1 || *columns == 1)
        && start.is_multiple_of(alignment.max(16))
        && shape.iter().zip(strides).all(is_aligned)
}

/// Returns the strides of `[batch, heads, rows, columns]`. Those of axes of size 1 are as if there
/// were no gaps: no element is read with them.
fn strides_of(layout: &Layout) -> Strides {
    let stride = |axis: usize| match layout.shape[axis] {
        0 | 1 => layout.shape[axis + 1..].iter().product::<usize>() as u64,
        _ => layout.strides[axis].unsigned_abs(),
    };
    Strides { batch: stride(0), head: stride(1), row: stride(2) }
}

/// Rotary position embedding of `[…, heads, columns]`, with a position for each of the other
/// coordinates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rotate {
    pub(crate) theta: Number,
    pub(crate) is_interleaved: bool,
}

impl Rule for Rotate {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn shape(&self, call: Call, _: DType, operands: &[&Shape]) -> Result<Shape> {
        let (x, positions) = (operands[0], operands[1]);
        let [rows @ .., _, columns] = &**x else {
            let help = "use [rows, heads, head_dim]";
            let problem = format!("{x} is not the shape of rows of heads");
            return Err(call.shape_error(&[x], problem, help));
        };
        if !columns.is_multiple_of(2) {
            let problem = format!("head_dim of {x} is {columns}, an odd number");
            return Err(call.shape_error(&[x], problem, "pairs are rotated: pad the heads"));
        }
        let fits = Layout::contiguous(positions.clone()).expand(&rows.into());
        if fits.is_none() {
            let rows = Shape::from(rows);
            let problem = format!("positions of {positions} do not expand to the rows, {rows}");
            let help = "pass a position for each row of heads";
            return Err(call.shape_error(&[x, positions], problem, help));
        }
        Ok(x.clone())
    }

    fn view(&self, operand: usize, shapes: &[&Shape]) -> Vec<View> {
        let rows = Shape::from(&shapes[0][..shapes[0].rank() - 2]);
        let is_same = operand == 0 || *shapes[1] == rows;
        if is_same { Vec::new() } else { vec![View::Expand(rows)] }
    }

    fn prepare(
        &self,
        library: &Kernels,
        operands: &[Bound<'_>],
        result: &UntypedBuffer,
    ) -> scry_gpu::Result<scry_kernels::Op> {
        let shape = &operands[0].1.shape;
        let [rows @ .., heads, columns] = &**shape else {
            unreachable!("the shape rule checks the rank")
        };
        let (theta, interleaved) = (self.theta.get(), self.is_interleaved);
        let rope = Rope { theta, interleaved, ..Rope::new(*heads, *columns) };
        let out = result.view_as(operands[0].2.of_buffer())?;
        let (x, positions) = (typed(&operands[0])?, typed(&operands[1])?);
        library.rope(&x, &positions, &out, rows.iter().product(), &rope)
    }
}
