//! Operations of the kernel library above the limit of a binding: products as those of some
//! matrices, rows and columns of the result, and functions of rows as those of some rows.

use std::ops::Range;

use scry_gpu::UntypedBuffer;
use scry_kernels::{Kernels, Op};

use super::library::Library;
use super::rows::NormKind;
use super::rule::Bound;
use crate::dtype::DType;
use crate::error::{Call, Result};
use crate::runtime::Runtime;
use crate::shape::{Layout, Shape};
use crate::sharding::{self, ALIGNMENT, Shard, result_unit, split, unit};
use crate::stored::check_bindings;

/// The operands of a shard, and the bytes of the result.
struct Part {
    operands: Vec<(Range<u64>, Layout)>,
    result: Range<u64>,
}

impl Library {
    /// Prepares the operation, as several ones if a buffer is above the limit of a binding.
    ///
    /// # Errors
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the operation cannot be split.
    pub(crate) fn prepare_shards(
        &self,
        call: Call,
        (runtime, library): (&Runtime, &Kernels),
        operands: &[Bound<'_>],
        (result, shape): (&UntypedBuffer, &Shape),
    ) -> Result<Vec<Op>> {
        let limit = runtime.max_binding();
        let dtype = self.dtype(operands[0].2);
        let bytes = super::library::packed_bytes(shape, dtype) as u64;
        let sizes = || operands.iter().map(|(buffer, ..)| buffer.byte_size());
        if sizes().chain([bytes]).all(|bytes| bytes <= limit) {
            let op = self.prepare(library, operands, result).map_err(|error| call.gpu(error))?;
            return Ok(vec![op]);
        }
        let parts = match self {
            Self::Matmul | Self::Contraction(_) => product_parts(operands, false, dtype, limit),
            Self::FusedProduct(it) => product_parts(operands, it.has_bias, dtype, limit),
            _ => {
                let rows = self.rows(operands);
                rows.and_then(|rows| row_parts(rows, operands, (shape, dtype), limit))
            }
        };
        let Some(parts) = parts else {
            check_bindings(call, runtime, sizes(), bytes)?;
            return Ok(Vec::new());
        };
        let prepare = |part: &Part| {
            let buffers = operands.iter().zip(&part.operands);
            let buffers = buffers.map(|((buffer, ..), (range, _))| sharding::slice(buffer, range));
            let buffers = buffers.collect::<scry_gpu::Result<Vec<_>>>()?;
            let own = part.operands.iter().zip(&buffers).zip(operands);
            let own: Vec<Bound<'_>> =
                own.map(|(((_, layout), buffer), it)| (buffer, layout, it.2)).collect();
            self.prepare(library, &own, &sharding::slice(result, &part.result)?)
        };
        let ops: scry_gpu::Result<Vec<Op>> = parts.iter().map(prepare).collect();
        ops.map_err(|error| call.gpu(error))
    }

    /// Returns the number of leading axes of the first operand that are rows, if the result of each
    /// row depends on it and the other operands alone.
    fn rows(&self, operands: &[Bound<'_>]) -> Option<usize> {
        let rank = operands[0].1.shape.rank();
        match self {
            Self::Reduce(it) => Some(rank - it.axes.iter().filter(|axis| **axis).count()),
            Self::Norm(it) if matches!(it.kind, NormKind::Group(_)) => None,
            Self::Rows(_) | Self::Norm(_) | Self::TopK(_) | Self::Dequantise(_) => {
                rank.checked_sub(1)
            }
            _ => None,
        }
    }
}

/// Returns the bytes of a layout, if they begin where a buffer may be bound.
fn aligned(layout: &Layout, dtype: DType) -> Option<(Range<u64>, Layout)> {
    let size = dtype.size() as u64;
    if layout.shape.contains(&0) {
        return Some((0..0, Layout { offset: 0, ..layout.clone() }));
    }
    let start = u64::try_from(layout.offset).ok()? * size;
    let axes = layout.shape.iter().zip(&layout.strides);
    let distance: u64 = axes
        .map(|(axis, stride)| u64::try_from(*stride).ok().map(|it| (*axis as u64 - 1) * it))
        .sum::<Option<u64>>()?;
    let end = (start + (distance + 1) * size).next_multiple_of(4);
    let layout = Layout { offset: 0, ..layout.clone() };
    start.is_multiple_of(ALIGNMENT).then_some((start..end, layout))
}

/// Splits the product of `[batch, rows, k]` and `[batch, k, columns]`, after which there may be a
/// bias of columns, and a residual that is in the memory of the result.
fn product_parts(
    operands: &[Bound<'_>],
    has_bias: bool,
    dtype: DType,
    limit: u64,
) -> Option<Vec<Part>> {
    let [(_, a, _), (_, b, _)] = [operands[0], operands[1]];
    let [batch, rows, _] = a.shape[..] else { return None };
    let sizes = [batch, rows, *b.shape.get(2)?];
    let bind = |shard: &Shard| -> Option<Part> {
        let along = |layout: &Layout, axis: usize, of: usize| {
            layout.slice(axis, shard.starts[of] as i64, 1, shard.sizes[of])
        };
        let own = |n: usize, (buffer, layout, dtype): &Bound<'_>| match n {
            0 => aligned(&along(&along(layout, 0, 0), 1, 1), *dtype),
            1 => aligned(&along(&along(layout, 0, 0), 2, 2), *dtype),
            // A bias has the shape of the result, and repeats an element for each column.
            2 if has_bias => {
                let columns = along(layout, layout.shape.rank() - 1, 2);
                Some((0..buffer.byte_size(), columns))
            }
            _ => Some((0..buffer.byte_size().min(limit), (*layout).clone())),
        };
        let operands = operands.iter().enumerate().map(|(n, it)| own(n, it));
        Some(Part {
            operands: operands.collect::<Option<_>>()?,
            result: shard.bytes(&sizes, dtype),
        })
    };
    let of = |layout: &Layout, axis: usize| {
        unit(layout.strides[axis].unsigned_abs() * dtype.size() as u64)
    };
    let units = |axis: usize| {
        let own = match axis {
            0 => of(a, 0).max(of(b, 0)),
            1 => of(a, 1),
            // Of the bias, too, whose elements follow one another.
            _ => of(b, 2).max(if operands.len() > 2 { unit(dtype.size() as u64) } else { 1 }),
        };
        own.max(result_unit(&sizes, axis, dtype))
    };
    split_parts(&sizes, &units, &bind, limit)
}

/// Splits the rows of the first operand. The other operands are whole.
fn row_parts(
    axes: usize,
    operands: &[Bound<'_>],
    (result, result_dtype): (&Shape, DType),
    limit: u64,
) -> Option<Vec<Part>> {
    let (_, layout, dtype) = operands[0];
    let rows: usize = layout.shape[..axes].iter().product();
    let columns: usize = layout.shape[axes..].iter().product();
    let row_bytes = match dtype.block_format() {
        Some(format) => columns / format.block_len() * format.block_bytes(),
        None => columns * dtype.size(),
    } as u64;
    let count = result.count()?;
    if !layout.is_contiguous() || layout.offset != 0 || !count.is_multiple_of(rows.max(1)) {
        return None;
    }
    let result_bytes = (count / rows.max(1) * result_dtype.size()) as u64;
    let bind = |shard: &Shard| -> Option<Part> {
        let (first, count) = (shard.starts[0] as u64, shard.sizes[0] as u64);
        let bytes = |row: u64| first * row..first * row + (count * row).next_multiple_of(4);
        let shape = [&[shard.sizes[0]], &layout.shape[axes..]].concat();
        let mut own = vec![(bytes(row_bytes), Layout::contiguous(shape.into()))];
        own[0].0.end = own[0].0.end.min(operands[0].0.byte_size());
        let others = operands[1..].iter();
        own.extend(others.map(|(buffer, layout, _)| (0..buffer.byte_size(), (*layout).clone())));
        Some(Part { operands: own, result: bytes(result_bytes) })
    };
    let units = |_| unit(row_bytes).max(unit(result_bytes));
    split_parts(&[rows], &units, &bind, limit)
}

/// Splits coordinates until the bindings of each part are at most `limit` bytes.
fn split_parts(
    sizes: &[usize],
    units: &dyn Fn(usize) -> usize,
    bind: &dyn Fn(&Shard) -> Option<Part>,
    limit: u64,
) -> Option<Vec<Part>> {
    let length = |range: &Range<u64>| range.end - range.start;
    let fits = |shard: &Shard| {
        bind(shard).is_some_and(|part| {
            length(&part.result) <= limit
                && part.operands.iter().all(|(range, _)| length(range) <= limit)
        })
    };
    split(sizes, units, &fits)?.iter().map(bind).collect()
}
